"""What a drafter's mask token is in the target's vocabulary: special, beyond it, or a word like any other."""

from typing import Any

from outrider.checkpoint import Checkpoint
from outrider.checkpoint.folder import read_json
from outrider.errors import CheckpointError

TYPES, PIECES = "tokenizer.ggml.token_type", "tokenizer.ggml.tokens"
NORMAL = 1  # of GGUF's token types


def mask_note(config: dict[str, Any], target: Checkpoint) -> str | None:
    """Return a sentence where the mask token is an ordinary word; None where it is not, or not known.

    Masks of trained drafters are special tokens or rows that no word has: a word in every masked slot says something.
    """
    token = mask_token(config)
    piece = None if token is None else _word(token, target)
    if piece is None:
        return None
    return f"mask_token_id {token} is an ordinary word of the target, {piece!r}: a mask is a special or unused token."


def mask_token(config: dict[str, Any]) -> int | None:
    """Return the id, wherever the config has it."""
    inner = config.get("dflash_config")
    for part in (inner if isinstance(inner, dict) else {}, config):
        value = part.get("mask_token_id")
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _word(token: int, target: Checkpoint) -> str | None:
    if target.source.kind == "gguf":
        kinds, pieces = target.metadata.get(TYPES), target.metadata.get(PIECES)
        known = kinds is not None and pieces is not None and 0 <= token < len(kinds)
        return str(pieces[token]) if known and kinds[token] == NORMAL else None  # type: ignore[index]
    try:
        found = read_json(target.source.path / "tokenizer.json")
        special = {int(entry["id"]) for entry in found.get("added_tokens") or ()}
        words = found["model"]["vocab"]
    except (CheckpointError, OSError, KeyError, TypeError, ValueError):
        return None
    if not isinstance(words, dict) or token in special:
        return None
    return next((str(word) for word, number in words.items() if number == token), None)
