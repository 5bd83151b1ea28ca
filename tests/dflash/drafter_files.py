"""Writes tiny drafters as z-lab folders: random weights far from the trivial ones, so nothing left out goes unseen.

Shapes are spelled out here once more, on purpose: what the package says of them is checked against this.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

VOCABULARY = 265  # of tests/tiny_model.py's tokenizer
HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM = 32, 48, 4, 2, 16
# Keys that the published files keep in ``dflash_config``.
NESTED = (
    *("block_size", "mask_token_id", "target_layer_ids", "causal", "use_swa", "swa_window_size"),
    *("attention_sink_bias", "attention_value_scale", "is_neox_style", "projector_type"),
    *("input_embedding_scale", "output_multiplier", "final_logit_softcapping"),
    *("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"),
    *("markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov"),
    "sample_from_anchor",
)
DEFAULTS: dict[str, Any] = {
    "model_type": "qwen3",
    "attention_bias": True,
    "head_dim": HEAD_DIM,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "max_position_embeddings": 512,
    "num_attention_heads": HEADS,
    "num_hidden_layers": 3,
    "num_key_value_heads": KV_HEADS,
    "num_target_layers": 2,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 700.0,
        "factor": 2.0,
        "original_max_position_embeddings": 256,
    },
    "sliding_window": 12,
    "use_sliding_window": True,
    "torch_dtype": "float32",
    "vocab_size": VOCABULARY,
    "block_size": 6,
    "mask_token_id": VOCABULARY - 1,
    "target_layer_ids": [0],
}


def write_drafter(
    folder: Path,
    *,
    target_hidden: int = HIDDEN,
    seed: int = 0,
    tensors: dict[str, Tensor | None] | None = None,
    **config: Any,
) -> Path:
    """Write a drafter for tests/tiny_model.py's targets and return its folder.

    Args:
        folder: made where it does not exist.
        target_hidden: width of the taps.
        seed: of the weights.
        tensors: to add or replace; None leaves one out.
        config: keys of config.json to change, wherever the published files keep them; None takes one out.
    """
    flat = DEFAULTS | {"architectures": [architecture_of(config)]} | config
    values = weights_of(flat, target_hidden, seed) | (tensors or {})
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value.contiguous() for name, value in values.items() if value is not None}
    save_file(kept, folder / "model.safetensors")
    write_config(folder, nested(flat))
    return folder


def architecture_of(config: dict[str, Any]) -> str:
    if config.get("conv_kernel_size"):
        return "DFlash2DraftModel"
    return "Qwen3DSparkModel" if config.get("markov_rank") else "DFlashDraftModel"


def weights_of(flat: dict[str, Any], target_hidden: int = HIDDEN, seed: int = 0) -> dict[str, Tensor]:
    """Random values of every tensor."""
    return random_weights(drafter_shapes(flat, target_hidden), seed)


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Put the drafter's own keys where the published files keep them."""
    kept = {key: value for key, value in flat.items() if value is not None}
    inner = {key: value for key, value in kept.items() if key in NESTED}
    return {key: value for key, value in kept.items() if key not in NESTED} | {"dflash_config": inner}


def write_config(folder: Path, config: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def change_config(folder: Path, *without: str, **changes: Any) -> Path:
    """Change top-level keys of a written config, and take some out."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    write_config(folder, {key: value for key, value in (config | changes).items() if key not in without})
    return folder


def drafter_shapes(flat: dict[str, Any], target_hidden: int) -> dict[str, tuple[int, ...]]:
    """Every tensor of a drafter with this config."""
    hidden = flat["hidden_size"]
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, len(flat["target_layer_ids"]) * target_hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    for layer in range(flat["num_hidden_layers"]):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in layer_shapes(flat).items()}
    return shapes | selector_shapes(flat) | markov_shapes(flat) | own_words(flat)


def layer_shapes(flat: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, inner, size = flat["hidden_size"], flat["intermediate_size"], flat["head_dim"]
    queries, keys = flat["num_attention_heads"] * size, flat["num_key_value_heads"] * size
    linears = {"q": (queries, hidden), "k": (keys, hidden), "v": (keys, hidden), "o": (hidden, queries)}
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_norm.weight": (size,),
        "self_attn.k_norm.weight": (size,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    for part, shape in linears.items():
        shapes[f"self_attn.{part}_proj.weight"] = shape
        if flat.get("attention_bias"):
            shapes[f"self_attn.{part}_proj.bias"] = shape[:1]
    if flat.get("attention_sink_bias"):
        shapes["self_attn.sinks"] = (flat["num_attention_heads"],)
    if flat.get("conv_kernel_size"):
        taps, group = flat["conv_kernel_size"], flat["conv_group_size"]
        for part in ("attention_conv", "mlp_conv"):
            shapes[f"{part}.base_kernel"] = (2, taps, hidden)
            shapes[f"{part}.kernel_projection.weight"] = (2 * taps * hidden // group, hidden)
    return shapes


def selector_shapes(flat: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    rank = flat.get("selector_rank")
    if not rank:
        return {}
    return {
        "candidate_selector.predecessor_codebook": (flat["vocab_size"], rank),
        "candidate_selector.successor_codebook": (flat["vocab_size"], rank),
        "candidate_selector.hidden_projection.weight": (rank, flat["hidden_size"]),
    }


def markov_shapes(flat: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    rank, hidden = flat.get("markov_rank") or 0, flat["hidden_size"]
    shapes: dict[str, tuple[int, ...]] = {}
    if rank:
        words = flat.get("draft_vocab_size") or flat["vocab_size"]
        shapes["markov_head.markov_w1.weight"] = (flat["vocab_size"], rank)
        shapes["markov_head.markov_w2.weight"] = (words, rank)
        joint = {"gated": ("gate_proj", rank, hidden + rank), "rnn": ("joint_proj", 3 * rank, hidden + 2 * rank)}
        if (kind := flat.get("markov_head_type")) in joint:
            name, rows, columns = joint[kind]
            shapes |= {f"markov_head.{name}.weight": (rows, columns), f"markov_head.{name}.bias": (rows,)}
    if flat.get("enable_confidence_head"):
        width = hidden + (rank if flat.get("confidence_head_with_markov") else 0)
        shapes |= {"confidence_head.proj.weight": (1, width), "confidence_head.proj.bias": (1,)}
    return shapes


def own_words(flat: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    words = flat.get("draft_vocab_size")
    return {"lm_head.weight": (words, flat["hidden_size"]), "d2t": (words,)} if words else {}


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: random_weight(name, shape, generator) for name, shape in shapes.items()}


def random_weight(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Norms from 0.3 to 1.7, vectors far from 0, matrices that keep the size of what flows through them."""
    if name == "d2t":  # every third word of the target, as offsets from the drafter's own
        return 2 * torch.arange(shape[0])
    if name.endswith("norm.weight"):
        return 0.3 + 1.4 * torch.rand(shape, generator=generator)
    values = torch.randn(shape, generator=generator)
    if len(shape) == 1:
        return 0.5 * values
    if name.endswith("base_kernel"):
        return 0.3 * values + torch.tensor([1.0, *[0.0] * (shape[1] - 1)])[None, :, None]
    return values * shape[-1] ** -0.5
