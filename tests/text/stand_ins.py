"""Small checkpoints and tokenizers for the tests of ``outrider.text``."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class StandInSource:
    path: Path
    kind: str


@dataclass(frozen=True)
class StandInCheckpoint:
    source: StandInSource
    config: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    generation_config: dict[str, Any] = field(default_factory=dict)


def folder_checkpoint(path: Path, **parts: Any) -> StandInCheckpoint:
    return StandInCheckpoint(StandInSource(path, "folder"), **parts)


def gguf_checkpoint(metadata: dict[str, Any], **parts: Any) -> StandInCheckpoint:
    source = StandInSource(Path("tiny.gguf"), "gguf")
    return StandInCheckpoint(source, metadata=metadata, **parts)


@cache
def recorded() -> dict[str, Any]:
    return json.loads((DATA / "word_rules.json").read_text(encoding="utf-8"))


def gguf_metadata(pre: str = "smollm") -> dict[str, Any]:
    """Return the metadata of a GGUF file with the recorded vocabulary of 584 tokens."""
    data = recorded()
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": list(data["tokens"]),
        "tokenizer.ggml.token_type": list(data["token_type"]),
        "tokenizer.ggml.merges": list(data["merges"]),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


def byte_level() -> Backend:
    """Return a byte-level tokenizer: 256 bytes, two merges, an end token, a user-defined one."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate([*alphabet, "Ġt", "ðŁ"])}
    backend = Backend(models.BPE(vocab=vocab, merges=[("Ġ", "t"), ("ð", "Ł")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens([AddedToken("<end>", special=True), AddedToken("<tool>")])
    return backend


def byte_fallback() -> Backend:
    """Return a tokenizer as converted from sentencepiece: leading spaces, bytes as ``<0xNN>``."""
    pieces = ["<unk>", *(f"<0x{i:02X}>" for i in range(256)), "▁", "▁the", "a", "é", "�", "日"]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    merge_free = models.BPE(vocab=vocab, merges=[], unk_token=pieces[0], byte_fallback=True)
    backend = Backend(merge_free)
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    backend.add_tokens([AddedToken("<end>", special=True)])
    return backend


def metaspace() -> Backend:
    """Return a tokenizer whose decoder takes the first space of a text away."""
    vocab = {piece: i for i, piece in enumerate(["▁", "▁the", "▁a", "b", "c"])}
    backend = Backend(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.add_tokens([AddedToken("<end>", special=True)])
    return backend
