"""GGUF's architecture ``qwen35`` in the words of Hugging Face's Qwen3.5: config, names, and what its converter changed.

The converter adds 1 to norms that scale by 1 + their weights, stores -exp(A_log), puts value heads in another order,
and appends multi-token prediction layers to the others as blocks (``nextn``).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outrider.checkpoint.checkpoint import TensorInfo, TiledHeads
from outrider.checkpoint.gguf_values import Values
from outrider.errors import CheckpointError

ARCHITECTURE, FAMILY = "qwen35", "qwen3_5"
IN_BLOCK = {
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "attn_qkv.weight": "linear_attn.in_proj_qkv.weight",
    "attn_gate.weight": "linear_attn.in_proj_z.weight",
    "ssm_beta.weight": "linear_attn.in_proj_b.weight",
    "ssm_alpha.weight": "linear_attn.in_proj_a.weight",
    "ssm_conv1d.weight": "linear_attn.conv1d.weight",
    "ssm_a": "linear_attn.A_log",
    "ssm_dt.bias": "linear_attn.dt_bias",
    "ssm_norm.weight": "linear_attn.norm.weight",
    "ssm_out.weight": "linear_attn.out_proj.weight",
}
NEXTN = {
    "nextn.eh_proj.weight": "mtp.fc.weight",
    "nextn.enorm.weight": "mtp.pre_fc_norm_embedding.weight",
    "nextn.hnorm.weight": "mtp.pre_fc_norm_hidden.weight",
    "nextn.shared_head_norm.weight": "mtp.norm.weight",
}
ONE_A_HEAD = {"A_log", "dt_bias", "in_proj_a.weight", "in_proj_b.weight"}
UNCHANGED_NORM = "linear_attn.norm.weight"
STORED = re.compile(r"blk\.(\d+)\.(.+)", re.ASCII)
KNOWN = re.compile(r"model\.layers\.(\d+)\.(.+)", re.ASCII)


def hybrid_config(values: Values, config: dict[str, Any]) -> dict[str, Any]:
    """Return the config.json of a file of this architecture, from what all architectures have in common."""
    heads, group = _heads(values)
    predicting = values.integer("nextn_predict_layers", default=0)
    rotated = values.integer("rope.dimension_count", default=config["head_dim"])
    return config | {
        "model_type": FAMILY,
        "num_hidden_layers": config["num_hidden_layers"] - predicting,
        "full_attention_interval": values.integer("full_attention_interval", default=4),
        "linear_num_key_heads": heads,
        "linear_num_value_heads": heads * group,
        "linear_key_head_dim": values.integer("ssm.state_size"),
        "linear_value_head_dim": values.integer("ssm.inner_size") // (heads * group),
        "linear_conv_kernel_dim": values.integer("ssm.conv_kernel"),
        "partial_rotary_factor": rotated / config["head_dim"],
        "mtp_num_hidden_layers": predicting,
    }


def _heads(values: Values) -> tuple[int, int]:
    """Key heads, and value heads that each serves."""
    heads, value_heads = values.integer("ssm.group_count"), values.integer("ssm.time_step_rank")
    if heads < 1 or value_heads < 1 or value_heads % heads:
        raise CheckpointError(
            f"{values.path}: {value_heads} value heads (ssm.time_step_rank) cannot be shared among {heads} key heads "
            "(ssm.group_count) evenly."
        )
    return heads, value_heads // heads


def hybrid_tensors(values: Values, config: Mapping[str, Any], found: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Return the tensors under Hugging Face's names, with what is to be undone where they are read."""
    layers = config["num_hidden_layers"]
    named = {_name(name, layers): info for name, info in found.items()}
    return {name: _marked(name, info, *_heads(values), config) for name, info in named.items()}


def _name(name: str, layers: int) -> str:
    stored = STORED.fullmatch(name)
    if stored and stored[2] in NEXTN and int(stored[1]) == layers:
        return NEXTN[stored[2]]
    if stored and stored[2] in IN_BLOCK:
        name = f"model.layers.{stored[1]}.{IN_BLOCK[stored[2]]}"
    known = KNOWN.fullmatch(name)
    return f"mtp.layers.{int(known[1]) - layers}.{known[2]}" if known and int(known[1]) >= layers else name


def _marked(name: str, info: TensorInfo, heads: int, group: int, config: Mapping[str, Any]) -> TensorInfo:
    if name.endswith("norm.weight") and not name.endswith(UNCHANGED_NORM):
        return replace(info, added=1.0)
    _, found, part = name.partition(".linear_attn.")
    if not found or part == "norm.weight":
        return info
    if part == "A_log":
        info = replace(info, negative_exp=True)
    if part == "conv1d.weight":
        info = replace(info, shape=(info.shape[0], 1, *info.shape[1:]))
    if group == 1:  # the orders agree
        return info
    size = (
        1 if part in {"A_log", "dt_bias", "in_proj_a.weight", "in_proj_b.weight"} else config["linear_value_head_dim"]
    )
    mixed = part in {"in_proj_qkv.weight", "conv1d.weight"}
    first = 2 * heads * config["linear_key_head_dim"] if mixed else 0
    return replace(info, tiled_heads=TiledHeads(heads, group, size, first, columns=part == "out_proj.weight"))
