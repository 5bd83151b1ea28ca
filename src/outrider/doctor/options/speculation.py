"""The flags with which an engine speculates: vLLM 0.33.0, SGLang 0.5.23, llama.cpp b11434."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outrider.doctor.evidence import Method

VLLM: Mapping[Method, str] = {
    "dflash": "dflash", "dflash2": "dflash", "dspark": "dspark", "mtp": "mtp", "eagle": "eagle", "eagle3": "eagle3",
    "draft_model": "draft_model", "ngram": "ngram",
}  # fmt: skip
SGLANG: Mapping[Method, str] = {
    "dflash": "DFLASH", "dflash2": "DFLASH", "dspark": "DSPARK", "mtp": "EAGLE", "eagle": "EAGLE", "eagle3": "EAGLE3",
    "draft_model": "STANDALONE", "ngram": "NGRAM",
}  # fmt: skip
LLAMA_CPP: Mapping[Method, str] = {
    "dflash": "draft-dflash", "dflash2": "draft-dflash", "dspark": "draft-dspark", "mtp": "draft-mtp",
    "eagle3": "draft-eagle3", "draft_model": "draft-simple", "ngram": "ngram-simple",
}  # fmt: skip
WHOLE_BLOCK = ("dflash", "dflash2", "dspark")
WITHOUT_MODEL = ("mtp", "ngram")


@dataclass(frozen=True, slots=True)
class Draft:
    """What speculates: a method, its model and so many tokens, the anchor not counted."""

    method: Method
    model: str | None
    tokens: int


def speculation(engine: str, draft: Draft) -> str | None:
    """Return the flags with which an engine speculates so; None where it does not."""
    write = {"vllm": _vllm, "sglang": _sglang, "llama.cpp": _llama_cpp}[engine]
    return write(draft)


def _vllm(draft: Draft) -> str | None:
    if draft.method not in VLLM:
        return None
    config: dict[str, Any] = {"method": VLLM[draft.method]}
    if draft.method not in WITHOUT_MODEL:
        config["model"] = draft.model or "DRAFTER"
    config["num_speculative_tokens"] = draft.tokens
    return f"--speculative-config {shlex.quote(json.dumps(config))}"


def _sglang(draft: Draft) -> str | None:
    if draft.method not in SGLANG:
        return None
    parts = [f"--speculative-algorithm {SGLANG[draft.method]}"]
    if draft.method not in WITHOUT_MODEL:
        parts.append(f"--speculative-draft-model-path {shlex.quote(draft.model or 'DRAFTER')}")
    if draft.method not in (*WHOLE_BLOCK, "ngram"):
        parts.append(f"--speculative-num-steps {draft.tokens} --speculative-eagle-topk 1")
    return " ".join([*parts, f"--speculative-num-draft-tokens {draft.tokens + (draft.method != 'ngram')}"])


def _llama_cpp(draft: Draft) -> str | None:
    if draft.method not in LLAMA_CPP:
        return None
    model = "" if draft.method in WITHOUT_MODEL else f"-md {shlex.quote(_gguf(draft.model))} "
    return f"{model}--spec-type {LLAMA_CPP[draft.method]} --spec-draft-n-max {draft.tokens}"


def _gguf(model: str | None) -> str:
    return model if model and model.lower().endswith(".gguf") else "DRAFTER.gguf"
