"""The many names of a drafter's tensors, and those that have no place in one that is run here.

Names of all formats become z-lab's. Knows no shapes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from outrider.checkpoint import Checkpoint, TensorInfo
from outrider.models.dflash.formats.problems import Problem

MASK_EMBEDDING = "mask_embedding"
PREFIXES = ("model.", "draft_model.")
SAME = {
    "encoder.fc": "fc",
    "encoder.output_norm_enc": "hidden_norm",
    "self_attn.attention_sink_bias": "self_attn.sinks",
}
BARE = ("predecessor_codebook", "successor_codebook", "base_kernel", "sinks", MASK_EMBEDDING)  # without .weight
# Copies of the target's, kept by trainers, and what follows from the config.
IGNORED = ("verifier_lm_head.", "verifier_norm.", "t2d", "rotary_emb.inv_freq")
FOREIGN = {
    "aux_hidden_norms": "norms each tap, as Laguna drafters do",
    "g_proj": "gates the heads, as Laguna drafters do",
    "qkv_proj": "is queries, keys and values in one; split it",
    "gate_up_proj": "is gate and up in one; split it",
    "hidden_correction": "corrects hidden states, as DFly drafters do",
    "experts": "belongs to a mixture of experts",
    "q_a_proj": "is latent attention",
    "kv_a_proj": "is latent attention",
    "weight_scale": "scales quantised weights",
    "weight_packed": "holds quantised weights",
    "qweight": "holds quantised weights",
}


@dataclass(frozen=True, slots=True)
class Named:
    """A checkpoint's tensors under z-lab's names, what is wrong with them, and what was left out."""

    tensors: dict[str, TensorInfo]
    problems: tuple[Problem, ...]
    ignored: tuple[str, ...]


def named(checkpoint: Checkpoint, name_of: Callable[[str], str]) -> Named:
    """Give the tensors their z-lab names.

    Args:
        checkpoint: opened files.
        name_of: the z-lab name of one in the files.
    """
    ignored = [name for name in checkpoint.tensors if any(part in name for part in IGNORED)]
    kept = {name: info for name, info in checkpoint.tensors.items() if name not in ignored}
    problems, foreign = _foreign(kept)
    tensors: dict[str, TensorInfo] = {}
    origins: dict[str, str] = {}
    for name, info in kept.items():
        if name in foreign:
            continue
        own = name_of(name)
        if own in tensors:
            message = f"the files hold {origins[own]} and {name}, two names of {own}; keep one of them."
            problems.append(Problem(own, message, fatal=True))
        tensors[own], origins[own] = _under(info, name, own), name
    return Named(tensors, tuple(problems), tuple(ignored))


def folder_name(name: str) -> str:
    """Return the z-lab name of a tensor in a folder, or its own if it has none."""
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    if any(name.endswith(f"{bare}.weight") for bare in BARE):
        name = name.removesuffix(".weight")
    for other, own in SAME.items():
        name = re.sub(rf"(^|\.){re.escape(other)}(?=\.|$)", rf"\g<1>{own}", name)
    return name


def _foreign(tensors: Mapping[str, TensorInfo]) -> tuple[list[Problem], set[str]]:
    """Name what belongs to a kind of drafter, or of storage, that is not run."""
    problems, found = [], set()
    for part, meaning in FOREIGN.items():
        names = [name for name in tensors if re.search(rf"(^|[._]){re.escape(part)}([._]|$)", name)]
        if names:
            problems.append(Problem(part, f"{names[0]} {meaning}; that is not run.", fatal=True))
            found.update(names)
    return problems, found


def _under(info: TensorInfo, name: str, own: str) -> TensorInfo:
    """Remember the name in the file, by which safetensors finds a tensor."""
    return info if name == own else replace(info, stored_name=name)
