"""Writes a DFlashConfig as the config.json of a z-lab drafter, of the old generation or of the new."""

from typing import Any

from outrider.models.dflash.config import DFlashConfig


def zlab_json(config: DFlashConfig, *, old: bool) -> dict[str, Any]:
    """The config.json; the block stands at the top of old ones, and theta beside ``rope_scaling``."""
    own = own_keys(config) | heads(config)
    block = {"block_size": own.pop("block_size")} if old else {}
    return layer_keys(config) | rope_keys(config, old=old) | mask_keys(config) | block | {"dflash_config": own}


def layer_keys(config: DFlashConfig) -> dict[str, Any]:
    return {
        "architectures": ["DFlash2DraftModel" if config.kind == "dflash2" else "DFlashDraftModel"],
        "model_type": "qwen3",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "max_position_embeddings": config.max_positions,
        "rms_norm_eps": config.norm_eps,
        "attention_bias": config.biases,
        "num_target_layers": config.num_target_layers,
        "draft_vocab_size": config.draft_vocab_size,
    }


def rope_keys(config: DFlashConfig, *, old: bool) -> dict[str, Any]:
    theta, options = config.rope.theta, {"rope_type": config.rope.kind, **config.rope.options}
    if old:
        return {"rope_theta": theta, "rope_scaling": None if config.rope.kind == "default" else options}
    return {"rope_parameters": {"rope_theta": theta, **options}}


def mask_keys(config: DFlashConfig) -> dict[str, Any]:
    """One size for all that slide; causality as the layers have it, or one value for all of them."""
    slides = [mask.window is not None for mask in config.layers]
    keys: dict[str, Any] = {
        "layer_types": ["sliding_attention" if each else "full_attention" for each in slides],
        "use_sliding_window": any(slides),
        "sliding_window": max((mask.window or 0 for mask in config.layers), default=0) or None,
    }
    causal = [mask.causal for mask in config.layers]
    return keys if causal == slides else keys | {"is_causal": causal[0]}


def own_keys(config: DFlashConfig) -> dict[str, Any]:
    return {
        "block_size": config.block_size,
        "mask_token_id": config.mask_token,
        "target_layer_ids": list(config.taps),
        "target_hidden_size": config.target_hidden_size,
        "sample_from_anchor": config.anchor_predicts,
        "input_embedding_scale": config.embedding_scale,
        "output_multiplier": config.output_multiplier,
        "final_logit_softcapping": config.soft_cap,
        "attention_value_scale": config.value_scale,
        "attention_sink_bias": config.sinks,
    }


def heads(config: DFlashConfig) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if config.convolution is not None and config.selector is not None:
        keys |= {"conv_kernel_size": config.convolution.taps, "conv_group_size": config.convolution.group}
        keys |= {"selector_rank": config.selector.rank, "selector_top_k": config.selector.top_k}
    if config.markov is not None:
        keys |= {"projector_type": "dspark", "markov_rank": config.markov.rank, "markov_head_type": config.markov.kind}
    if config.confidence is not None:
        keys |= {"enable_confidence_head": True, "confidence_head_with_markov": config.confidence.with_markov}
    return keys
