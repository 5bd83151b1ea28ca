"""A tiny Qwen3.5 in the forms in which such models are published: multimodal, in 8-bit floats, as GGUF."""

import json
from pathlib import Path

import numpy as np
import torch
from checkpoint.checkpoint_files import add_tensor, finish
from gguf import GGUFWriter
from safetensors.torch import load_file, save_file
from tiny_model import write_tiny_model
from torch import Tensor

Tensors = dict[str, Tensor]
FP8_LIMIT = 448.0
LAYERS, KEY_HEADS, GROUP, KEY_SIZE, VALUE_SIZE = 4, 2, 3, 8, 4


def plain_folder(folder: Path, **config) -> Path:
    """A text-only checkpoint with heads."""
    return write_tiny_model(folder, "qwen3_5", **config)


def tensors_of(folder: Path) -> Tensors:
    return load_file(folder / "model.safetensors")


def rewrite(folder: Path, tensors: Tensors, **config) -> Path:
    """Put other tensors in the folder, and keys in its config."""
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return folder


def as_multimodal(folder: Path, *, log_dtype: torch.dtype = torch.float32) -> Path:
    """The published layout: the text model under a prefix and a nested config, beside a vision tower."""
    tensors = {
        name.replace("model.", "model.language_model.", 1) if name.startswith("model.") else name: tensor
        for name, tensor in tensors_of(folder).items()
    }
    tensors |= {name: tensor.to(log_dtype) for name, tensor in tensors.items() if name.endswith("A_log")}
    tensors["model.visual.patch_embed.proj.weight"] = torch.ones(3, 2)
    path = folder / "config.json"
    text = json.loads(path.read_text()) | {"model_type": "qwen3_5_text", "output_gate_type": "swish"}
    outer = {"model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": text}
    outer |= {key: text.pop(key) for key in ("quantization_config",) if key in text}
    path.write_text(json.dumps(outer | {"vision_config": {"depth": 1}, "tie_word_embeddings": False}))
    return rewrite(folder, tensors)


def quantise(values: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """8-bit floats, their factors, and the numbers that both stand for."""
    rows, columns = values.shape
    counts = [-(-size // block) for size in values.shape]
    factors, quantised, meant = torch.empty(counts), values.to(torch.float8_e4m3fn), values.clone()
    for i in range(counts[0]):
        for j in range(counts[1]):
            part = (slice(i * block, min(rows, (i + 1) * block)), slice(j * block, min(columns, (j + 1) * block)))
            factors[i, j] = values[part].abs().amax() / FP8_LIMIT
            quantised[part] = (values[part] / factors[i, j]).to(torch.float8_e4m3fn)
            meant[part] = quantised[part].float() * factors[i, j]
    return quantised, factors, meant


def as_fp8(folder: Path, block: int) -> Tensors:
    """Every linear layer of the blocks in 8-bit floats; return what the tensors then mean."""
    stored, meant = {}, {}
    for name, tensor in tensors_of(folder).items():
        stored[name] = meant[name] = tensor
        if name.endswith("proj.weight") and tensor.dim() == 2:
            stored[name], stored[f"{name}_scale_inv"], meant[name] = quantise(tensor, block)
    said = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [block, block]}
    rewrite(folder, stored, quantization_config=said)
    return meant


def tiled(values: np.ndarray, size: int, first: int = 0) -> np.ndarray:
    """Value heads as ggml repeats keys over them: the first of every key head, then the second of every."""
    heads = values[first:].reshape(KEY_HEADS, GROUP, size, *values.shape[1:])
    return np.concatenate([values[:first], heads.swapaxes(0, 1).reshape(values[first:].shape)])


def as_converted(name: str, value: np.ndarray) -> tuple[str, np.ndarray]:
    """What llama.cpp's converter makes of a tensor: its name and values."""
    whole = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight"}
    whole |= {"model.norm.weight": "output_norm.weight", "mtp.fc.weight": f"blk.{LAYERS}.nextn.eh_proj.weight"}
    nextn = {"norm": "shared_head_norm", "pre_fc_norm_embedding": "enorm", "pre_fc_norm_hidden": "hnorm"}
    whole |= {f"mtp.{ours}.weight": f"blk.{LAYERS}.nextn.{theirs}.weight" for ours, theirs in nextn.items()}
    if name.endswith("norm.weight") and "linear_attn" not in name:
        value = value + 1
    if name in whole:
        return whole[name], value
    layer, part = name.removeprefix("model.layers.").removeprefix("mtp.layers.").split(".", 1)
    number = int(layer) + (LAYERS if name.startswith("mtp.") else 0)
    mixed, all_values = 2 * KEY_HEADS * KEY_SIZE, VALUE_SIZE
    part, value = {
        "input_layernorm.weight": lambda: ("attn_norm.weight", value),
        "post_attention_layernorm.weight": lambda: ("post_attention_norm.weight", value),
        "linear_attn.in_proj_qkv.weight": lambda: ("attn_qkv.weight", tiled(value, all_values, mixed)),
        "linear_attn.in_proj_z.weight": lambda: ("attn_gate.weight", tiled(value, all_values)),
        "linear_attn.in_proj_b.weight": lambda: ("ssm_beta.weight", tiled(value, 1)),
        "linear_attn.in_proj_a.weight": lambda: ("ssm_alpha.weight", tiled(value, 1)),
        "linear_attn.conv1d.weight": lambda: ("ssm_conv1d.weight", tiled(value[:, 0], all_values, mixed)),
        "linear_attn.A_log": lambda: ("ssm_a", -np.exp(tiled(value, 1))),
        "linear_attn.dt_bias": lambda: ("ssm_dt.bias", tiled(value, 1)),
        "linear_attn.norm.weight": lambda: ("ssm_norm.weight", value),
        "linear_attn.out_proj.weight": lambda: ("ssm_out.weight", tiled(value.T, all_values).T),
        "self_attn.o_proj.weight": lambda: ("attn_output.weight", value),
    }.get(part, lambda: (_usual(part), value))()
    return f"blk.{number}.{part}", np.ascontiguousarray(value)


def _usual(part: str) -> str:
    """Names that all architectures share."""
    kind, name, end = part.split(".")
    short = name.removesuffix("_proj").replace("_norm", "")
    return f"ffn_{short}.{end}" if kind == "mlp" else f"attn_{short}{'_norm' if 'norm' in name else ''}.{end}"


def as_gguf(folder: Path, path: Path, *, kind: str = "F32") -> Path:
    """The folder as a GGUF file of architecture ``qwen35``."""
    config = json.loads((folder / "config.json").read_text())
    writer = GGUFWriter(path, "qwen35")
    writer.add_block_count(LAYERS + 1)
    writer.add_nextn_predict_layers(1)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"] // 2)
    writer.add_rope_dimension_sections([1, 1, 0, 0])
    writer.add_full_attention_interval(4)
    writer.add_ssm_conv_kernel(4)
    writer.add_ssm_state_size(KEY_SIZE)
    writer.add_ssm_group_count(KEY_HEADS)
    writer.add_ssm_time_step_rank(KEY_HEADS * GROUP)
    writer.add_ssm_inner_size(KEY_HEADS * GROUP * VALUE_SIZE)
    writer.add_token_list(["<s>", "a", "b"])
    writer.add_token_merges(["a b"])
    for name, tensor in tensors_of(folder).items():
        stored, value = as_converted(name, tensor.float().numpy())
        add_tensor(writer, stored, value.astype(np.float32), kind if value.shape[-1] % 32 == 0 else "F32")
    return finish(writer)
