"""Writes drafters as llama.cpp's converter does: architecture ``dflash``, its keys, its names of tensors."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from dflash.drafter_files import DEFAULTS, weights_of
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from torch import Tensor

NAMES = {
    "hidden_norm.": "enc.output_norm.",
    "lm_head.": "output.",
    "embed_tokens.": "token_embd.",
    "markov_head.": "",
    "confidence_head.proj": "conf_proj",
    "candidate_selector.predecessor_codebook": "selector_predecessor.weight",
    "candidate_selector.successor_codebook": "selector_successor.weight",
    "candidate_selector.hidden_projection": "selector_hidden",
    "layers.": "blk.",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.sinks": "attn_sinks.weight",
    "attention_conv.base_kernel": "attn_conv_base",
    "attention_conv.kernel_projection": "attn_conv_proj",
    "mlp_conv.base_kernel": "ffn_conv_base",
    "mlp_conv.kernel_projection": "ffn_conv_proj",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
KEYS: dict[str, Any] = {
    "block_count": 3,
    "context_length": 512,
    "embedding_length": 32,
    "feed_forward_length": 48,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 16,
    "attention.value_length": 16,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "attention.sliding_window": 12,
    "attention.sliding_window_pattern": [True, False, True],
    "rope.freq_base": 700.0,
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 2.0,
    "rope.scaling.original_context_length": 256,
    "block_size": 6,
    "target_layers": [1],
}
DSPARK_GGUF = {"sample_from_anchor": True, "has_confidence_head": True}
DFLASH2_GGUF = {"conv_kernel_size": 2, "conv_group_size": 4, "selector_rank": 6, "selector_top_k": 5}


def gguf_name(name: str) -> str:
    for own, theirs in NAMES.items():
        name = name.replace(own, theirs)
    return name if not name.startswith("norm.") else f"output_{name}"


def write_gguf_drafter(
    path: Path,
    drafter: dict[str, Any] | None = None,
    *,
    kind: str = "F32",
    tensors: dict[str, Tensor | None] | None = None,
    mask_token: int | None = 264,
    **changes: Any,
) -> Path:
    """Write one and return its path.

    Args:
        path: of the file.
        drafter: z-lab keys that the weights depend on.
        kind: how matrices are stored.
        tensors: under their GGUF names, to add or replace; None leaves one out.
        mask_token: of the tokenizer.
        changes: keys under the architecture's prefix, with _ for their first dot; None takes one out.
    """
    writer = GGUFWriter(path, "dflash")
    for key, value in (KEYS | changes).items():
        add_key(writer, f"dflash.{key}", value)
    if mask_token is not None:
        writer.add_mask_token_id(mask_token)
    writer.add_token_list([f"<{number}>" for number in range(265)])
    values = {gguf_name(name): value for name, value in weights_of(DEFAULTS | (drafter or {})).items()}
    if "d2t" in values:  # offsets in folders, ids here
        values["d2t"] = values["d2t"] + torch.arange(len(values["d2t"]))
    for name, value in (values | (tensors or {})).items():
        if value is not None:
            add_tensor(writer, name, value, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_key(writer: GGUFWriter, key: str, value: Any) -> None:
    adders = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    if isinstance(value, list):
        writer.add_array(key, value)
    elif value is not None:
        adders[type(value)](key, value)


def add_tensor(writer: GGUFWriter, name: str, value: Tensor, kind: str) -> None:
    data = value.numpy()
    if data.dtype == np.int64:
        writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType.I64)
        return
    stored = kind if value.ndim == 2 and value.shape[-1] % 32 == 0 else "F32"
    writer.add_tensor(name, quantize(data, GGMLQuantizationType[stored]), raw_dtype=GGMLQuantizationType[stored])
