"""A drafter's config as a z-lab config.json, of the generation that keeps its own keys in ``dflash_config``."""

from typing import Any

from outrider.errors import UnsupportedError
from outrider.models.config import Rope
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.windows import FULL, SLIDING
from outrider.models.dflash.formats.zlab import DEEPSPEC, DFLASH, DFLASH2, NESTED
from outrider.repair.readings import window_of

ARCHITECTURES = {"dflash": DFLASH, "dflash2": DFLASH2, "dspark": DEEPSPEC}
# What the tensors determine, by its keys.
SIZES = frozenset(
    (
        *("architectures", "model_type", "projector_type", "hidden_act", "hidden_size", "intermediate_size"),
        *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"),
        *("attention_bias", "attention_sink_bias", "target_hidden_size", "draft_vocab_size", "num_target_layers"),
        *("conv_kernel_size", "conv_group_size", "selector_rank", "markov_rank", "markov_head_type"),
        *("enable_confidence_head", "confidence_head_with_markov"),
    )
)


def zlab_config(config: DFlashConfig) -> dict[str, Any]:
    """Return the keys of config.json.

    Raises:
        UnsupportedError: windows and causality of the layers are a mixture that the format has no words for.
    """
    top = {
        "architectures": [ARCHITECTURES[config.kind]],
        "model_type": "qwen3",
        "attention_bias": config.biases,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_positions,
        "num_attention_heads": config.num_heads,
        "num_hidden_layers": config.num_layers,
        "num_key_value_heads": config.num_kv_heads,
        "num_target_layers": config.num_target_layers,
        "rms_norm_eps": config.norm_eps,
        "rope_parameters": rope_keys(config.rope),
        "target_hidden_size": config.target_hidden_size,
        "vocab_size": config.vocab_size,
        "draft_vocab_size": config.draft_vocab_size,
        **_masks(config),
    }
    kept = {key: value for key, value in top.items() if value is not None}
    return kept | {NESTED: {key: value for key, value in _own(config).items() if value is not None}}


def rope_keys(rope: Rope) -> dict[str, Any]:
    """Return ``rope_parameters``."""
    return {"rope_type": rope.kind, "rope_theta": rope.theta, **rope.options}


def _masks(config: DFlashConfig) -> dict[str, Any]:
    """Windows and causality: a sliding layer is causal and a full one is not, unless ``is_causal`` says it for all."""
    sizes = {mask.window for mask in config.layers if mask.window is not None}
    causal = {mask.causal for mask in config.layers}
    usual = all(mask.causal == (mask.window is not None) for mask in config.layers)
    if len(sizes) > 1 or (not usual and len(causal) > 1):
        raise UnsupportedError(
            f"Layers of windows {sorted(sizes)} of which {sum(mask.causal for mask in config.layers)} are causal: a "
            "config.json has one window, and causal layers are those that slide, or all, or none; nothing is written."
        )
    kinds = [FULL if mask.window is None else SLIDING for mask in config.layers]
    window = window_of(config.layers)
    return {
        "layer_types": kinds,
        "sliding_window": window,
        "use_sliding_window": None if window is None else True,
        "is_causal": None if usual else causal == {True},
    }


def _own(config: DFlashConfig) -> dict[str, Any]:
    convolution, selector, markov, confidence = (
        config.convolution, config.selector, config.markov, config.confidence,
    )  # fmt: skip
    return {
        "block_size": config.block_size,
        "mask_token_id": config.mask_token,
        "target_layer_ids": list(config.taps),
        "sample_from_anchor": config.anchor_predicts if config.anchor_predicts or config.kind == "dspark" else None,
        "attention_sink_bias": config.sinks or None,
        "attention_value_scale": _unless(config.value_scale, 1.0),
        "input_embedding_scale": _unless(config.embedding_scale, 1.0),
        "output_multiplier": _unless(config.output_multiplier, 1.0),
        "final_logit_softcapping": config.soft_cap,
        "conv_kernel_size": convolution and convolution.taps,
        "conv_group_size": convolution and convolution.group,
        "selector_rank": selector and selector.rank,
        "selector_top_k": selector and selector.top_k,
        "projector_type": "dspark" if config.kind == "dspark" else None,
        "markov_rank": (markov.rank if markov else 0) if config.kind == "dspark" else None,
        "markov_head_type": markov and markov.kind,
        "enable_confidence_head": confidence is not None if config.kind == "dspark" else None,
        "confidence_head_with_markov": confidence and confidence.with_markov,
    }


def _unless(value: float, usual: float) -> float | None:
    return None if value == usual else value
