"""Tiny models, in GGUF files written with the gguf package and in folders, for the tests of ``outrider.checkpoint``."""

import json
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from safetensors.torch import save_file

from outrider.checkpoint import Source

HIDDEN, INNER, VOCABULARY, HEADS, KV_HEADS = 64, 96, 40, 4, 2
CONFIG = {
    "model_type": "llama",
    "hidden_size": 4,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 3,
}
# Where each K block keeps its half-precision scales; the rest may be any bytes.
SCALES = {"Q2_K": (80, 84), "Q3_K": (108, 110), "Q4_K": (0, 4), "Q5_K": (0, 4), "Q6_K": (208, 210)}


def source_of(path: Path) -> Source:
    return Source(path, "folder" if path.is_dir() else "gguf", f"test {path}")


def folder_of(path, weights=None):
    """Write a model's folder; without ``weights`` only its config."""
    (path / "config.json").write_text(json.dumps(CONFIG))
    if weights is not None:
        save_file(weights, path / "model.safetensors")
    return path


def block_shapes(head_dim: int = HIDDEN // HEADS) -> dict[str, tuple[int, ...]]:
    queries, keys = HEADS * head_dim, KV_HEADS * head_dim
    return {
        "attn_norm": (HIDDEN,),
        "attn_q": (queries, HIDDEN),
        "attn_k": (keys, HIDDEN),
        "attn_v": (keys, HIDDEN),
        "attn_output": (HIDDEN, queries),
        "ffn_norm": (HIDDEN,),
        "ffn_gate": (INNER, HIDDEN),
        "ffn_up": (INNER, HIDDEN),
        "ffn_down": (HIDDEN, INNER),
    }


def tensors(*, output=False, biases=False, norms=False, seed=0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"token_embd.weight": (VOCABULARY, HIDDEN), "output_norm.weight": (HIDDEN,)}
    shapes |= {f"blk.0.{name}.weight": shape for name, shape in block_shapes().items()}
    if output:
        shapes["output.weight"] = (VOCABULARY, HIDDEN)
    if biases:
        for name in ("attn_q", "attn_k", "attn_v"):
            shapes[f"blk.0.{name}.bias"] = block_shapes()[name][:1]
    if norms:
        shapes["blk.0.attn_q_norm.weight"] = shapes["blk.0.attn_k_norm.weight"] = (16,)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def write(
    path: Path,
    architecture="llama",
    values: dict[str, np.ndarray] | None = None,
    *,
    kind="F32",
    skip=(),
    extra=None,
) -> Path:
    """Write a whole tiny model; ``extra(writer)`` adds metadata, ``skip`` leaves keys out."""
    writer = GGUFWriter(path, architecture)
    metadata = {
        "block_count": writer.add_block_count,
        "context_length": writer.add_context_length,
        "embedding_length": writer.add_embedding_length,
        "feed_forward_length": writer.add_feed_forward_length,
        "head_count": writer.add_head_count,
        "head_count_kv": writer.add_head_count_kv,
        "eps": writer.add_layer_norm_rms_eps,
        "theta": writer.add_rope_freq_base,
    }
    numbers = (1, 512, HIDDEN, INNER, HEADS, KV_HEADS, 1e-5, 500000.0)
    for (name, add), number in zip(metadata.items(), numbers, strict=True):
        if name not in skip:
            add(number)
    writer.add_token_list(["<s>", "é", "b"])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if extra is not None:
        extra(writer)
    for name, value in (tensors() if values is None else values).items():
        add_tensor(writer, name, value, kind)
    return finish(writer)


def add_tensor(writer: GGUFWriter, name: str, value: np.ndarray, kind: str) -> None:
    if value.dtype == np.uint8:  # blocks that are made already
        writer.add_tensor(name, value, raw_dtype=GGMLQuantizationType[kind])
        return
    stored = "F32" if value.ndim == 1 else kind
    data = quantize(value, GGMLQuantizationType[stored])
    writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType[stored])


def finish(writer: GGUFWriter) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Path(writer.path)


def random_blocks(kind: str, rows: int, blocks: int, seed: int = 0) -> np.ndarray:
    """Return blocks of any bytes but with scales that are finite numbers."""
    rng = np.random.default_rng(seed)
    size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]
    data = rng.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    first, last = SCALES[kind]
    scales = rng.standard_normal((rows, blocks, (last - first) // 2)).astype(np.float16)
    data[..., first:last] = scales.view(np.uint8)
    return data.reshape(rows, -1)
