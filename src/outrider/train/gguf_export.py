"""A drafter as a GGUF file of llama.cpp's architecture ``dflash``: keys, names and vocabulary.

The inverse of ``models.dflash.formats.gguf``, whose tables of names it turns round. What llama.cpp (b11434) would run
otherwise than it was trained is refused.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outrider.errors import UnsupportedError
from outrider.models.config import Rope
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.gguf import ARCHITECTURE, BARE_IN_BLOCK, PARTS, WHOLE
from outrider.models.dflash.formats.writing import causal_for_all, single_window

if TYPE_CHECKING:
    from gguf import GGUFWriter
    from torch import Tensor

    from outrider.train.vocabulary import Vocabulary

WHOLE_NAMES = {own: theirs for theirs, own in WHOLE.items()}
PART_NAMES = {own: theirs for theirs, own in PARTS.items()}
BARE_NAMES = {own: f"{theirs}.weight" for theirs, own in BARE_IN_BLOCK.items()}
SCALING = {
    "linear": {"factor": "factor"},
    "yarn": {
        "factor": "factor",
        "original_max_position_embeddings": "original_context_length",
        "beta_fast": "yarn_beta_fast",
        "beta_slow": "yarn_beta_slow",
    },
}
TABLE = "d2t"  # of the drafter's own words: offsets here, ids in the file
WHOLE_NUMBERS = ("original_max_position_embeddings",)


def write_gguf(
    path: Path, config: DFlashConfig, tensors: Mapping[str, "Tensor"], dtype: str, vocabulary: "Vocabulary"
) -> None:
    """Write the file.

    Args:
        path: of the file.
        config: of the drafter.
        tensors: under z-lab names.
        dtype: of the matrices, bfloat16 or float32; vectors are float32.
        vocabulary: the target's.

    Raises:
        UnsupportedError: llama.cpp does not run something of the drafter.
        CheckpointError: the vocabulary has more tokens than the drafter.
    """
    from gguf import GGUFWriter, LlamaFileType

    _refuse(config)
    entries = {f"{ARCHITECTURE}.{key}": value for key, value in _keys(config).items()}
    writer = GGUFWriter(path, ARCHITECTURE)
    writer.add_file_type(LlamaFileType.MOSTLY_BF16 if dtype == "bfloat16" else LlamaFileType.ALL_F32)
    for key, value in (entries | vocabulary.padded(config.vocab_size)).items():
        _add(writer, key, value)
    if config.mask_token is not None:
        writer.add_mask_token_id(config.mask_token)
    for name, tensor in tensors.items():
        _add_tensor(writer, tensor_name(name), tensor, dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensor_name(name: str) -> str:
    """Return the name that llama.cpp gives to a tensor with this z-lab name."""
    if name == TABLE:
        return name
    if not name.startswith("layers."):
        stem, _, end = name.rpartition(".")
        return f"{WHOLE_NAMES[stem]}.{end}"
    _, block, part = name.split(".", 2)
    stem, _, end = part.rpartition(".")
    return f"blk.{block}.{BARE_NAMES.get(part) or f'{PART_NAMES[stem]}.{end}'}"


def _refuse(config: DFlashConfig) -> None:
    refused = {
        f"drafters of kind {config.kind} from training": config.kind != "dflash",
        "biases in attention": config.biases,
        "an anchor's slot that predicts": config.anchor_predicts,
        "features of another width than the drafter's": config.target_hidden_size != config.hidden_size,
        f"RoPE of kind {config.rope.kind}": config.rope.kind not in ("default", *SCALING),
        f"the RoPE options {', '.join(_unknown(config.rope))}": bool(_unknown(config.rope)),
    }
    found = [what for what, is_there in refused.items() if is_there]
    if found:
        raise UnsupportedError(f"Not written as GGUF, for llama.cpp would not run it as trained: {'; '.join(found)}.")


def _unknown(rope: Rope) -> list[str]:
    return [key for key in rope.options if key not in SCALING.get(rope.kind, {})]


def _keys(config: DFlashConfig) -> dict[str, Any]:
    return {
        "block_count": config.num_layers,
        "context_length": config.max_positions,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_heads,
        "attention.head_count_kv": config.num_kv_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": config.norm_eps,
        "vocab_size": config.vocab_size,
        "block_size": config.block_size,
        "target_layers": [tap + 1 for tap in config.taps],  # counted by their inputs
        **_rope_keys(config.rope, config.head_dim),
        **_mask_keys(config),
        **_scales(config),
    }


def _rope_keys(rope: Rope, head_dim: int) -> dict[str, Any]:
    keys: dict[str, Any] = {"rope.freq_base": float(rope.theta), "rope.dimension_count": head_dim}
    if rope.kind != "default":
        keys["rope.scaling.type"] = rope.kind
        for own, theirs in SCALING[rope.kind].items():
            if rope.options.get(own) is not None:
                value = rope.options[own]
                keys[f"rope.scaling.{theirs}"] = int(value) if own in WHOLE_NUMBERS else float(value)
    return keys


def _mask_keys(config: DFlashConfig) -> dict[str, Any]:
    """Windows, and causality where it is the same in all layers; unsaid, sliding ones are causal and full ones not."""
    window, causal = single_window(config.layers), {mask.causal for mask in config.layers}
    causal_for_all(config.layers)  # refuses other mixtures
    keys: dict[str, Any] = {}
    if window is not None:
        keys["attention.sliding_window"] = window
        keys["attention.sliding_window_pattern"] = [mask.window is not None for mask in config.layers]
    if len(causal) == 1:
        keys["attention.causal"] = causal == {True}
    return keys


def _scales(config: DFlashConfig) -> dict[str, Any]:
    scales = {
        "embedding_scale": config.embedding_scale,
        "logit_scale": config.output_multiplier,
        "attention.value_scale": config.value_scale,
    }
    keys: dict[str, Any] = {key: value for key, value in scales.items() if not math.isclose(value, 1.0)}
    return keys | ({} if config.soft_cap is None else {"final_logit_softcapping": config.soft_cap})


def _add(writer: "GGUFWriter", key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def _add_tensor(writer: "GGUFWriter", name: str, tensor: "Tensor", dtype: str) -> None:
    import torch
    from gguf import GGMLQuantizationType

    values = tensor.detach().cpu()
    if name == TABLE:
        writer.add_tensor(name, (values + torch.arange(len(values))).to(torch.int64).numpy())
    elif values.ndim > 1 and dtype == "bfloat16":
        data = values.to(torch.bfloat16).contiguous().view(torch.uint8).numpy()
        writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType.BF16)
    else:
        writer.add_tensor(name, values.to(torch.float32).contiguous().numpy())
