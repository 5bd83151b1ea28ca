"""The target's vocabulary for a drafter's GGUF file: llama.cpp opens none without one, and counts its tokens.

Drafts are token ids, so what cuts text into tokens is carried along and never used. Vocabularies of GGUF files are
copied; of folders, byte-level BPE is understood.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.checkpoint import Checkpoint
from outrider.errors import CheckpointError, UnsupportedError

PREFIX = "tokenizer."
KEY = "tokenizer.ggml."
LEFT_OUT = ("tokenizer.chat_template", f"{KEY}mask_token_id")
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # gguf.TokenType


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Metadata of a GGUF file under ``tokenizer.``, without the chat template and the mask token."""

    entries: Mapping[str, Any]

    def padded(self, size: int) -> dict[str, Any]:
        """Return the entries with as many tokens as the target's table has rows.

        Raises:
            CheckpointError: there are more.
        """
        tokens, types = list(self.entries[f"{KEY}tokens"]), self.entries.get(f"{KEY}token_type")
        if len(tokens) > size:
            raise CheckpointError(
                f"The vocabulary has {len(tokens)} tokens and the drafter {size}; it is another model's."
            )
        missing = range(len(tokens), size)
        types = list(types) if types is not None else [NORMAL] * len(tokens)
        return dict(self.entries) | {
            f"{KEY}tokens": [*tokens, *(f"[PAD{token}]" for token in missing)],
            f"{KEY}token_type": [*types, *(UNUSED for _ in missing)],
        }


def read_vocabulary(target: Checkpoint) -> Vocabulary:
    """Return the vocabulary of a target.

    Raises:
        CheckpointError: it has none, or a damaged one.
        UnsupportedError: of a kind that is not turned into GGUF here.
    """
    if target.source.kind == "folder":
        return Vocabulary(_from_folder(target.source.path))
    entries = {key: value for key, value in target.metadata.items() if key.startswith(PREFIX) and key not in LEFT_OUT}
    if not entries.get(f"{KEY}tokens"):
        raise CheckpointError(f"{target.source.path} carries no vocabulary ({KEY}tokens); give another file.")
    if f"{KEY}precompiled_charsmap" in entries:
        raise UnsupportedError(f"{target.source.path} has a vocabulary of kind t5, which is not copied.")
    return Vocabulary(entries)


def _from_folder(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        model, added = raw["model"], raw.get("added_tokens") or []
        if model.get("type") != "BPE" or model.get("byte_fallback"):
            raise UnsupportedError(
                f"{path} is of kind {model.get('type')}, and only byte-level BPE is turned into GGUF here; name a GGUF "
                "file of the target instead."
            )
        ids = {token: int(number) for token, number in model["vocab"].items()}
        ids |= {token["content"]: int(token["id"]) for token in added}
    except OSError as error:
        raise CheckpointError(
            f"Cannot read {path}: {error.strerror or error}. llama.cpp needs the target's vocabulary; name a GGUF file "
            "of the target instead."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged ({type(error).__name__}: {error}). Fetch it again.") from error
    kinds = {token["content"]: CONTROL if token.get("special") else USER_DEFINED for token in added}
    return {f"{KEY}model": "gpt2", f"{KEY}pre": "default", **_tokens(ids, kinds), **_special(folder, len(ids))}


def _tokens(ids: Mapping[str, int], kinds: Mapping[str, int]) -> dict[str, Any]:
    names = {number: token for token, number in ids.items()}
    numbers = range(max(names) + 1)
    return {
        f"{KEY}tokens": [names.get(number, f"[PAD{number}]") for number in numbers],
        f"{KEY}token_type": [kinds.get(names[n], NORMAL) if n in names else UNUSED for n in numbers],
    }


def _special(folder: Path, size: int) -> dict[str, Any]:
    from gguf.vocab import SpecialVocab

    special = SpecialVocab(folder, load_merges=True, special_token_types=("bos", "eos"), n_vocab=size)
    return {
        f"{KEY}merges": special.merges,
        **{f"{KEY}{name}_token_id": number for name, number in special.special_token_ids.items()},
    }
