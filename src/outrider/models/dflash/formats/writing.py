"""A drafter's config as a config.json: z-lab's, of the newer generation, and the speculators library's.

What a format has no words for is refused, never dropped: a wrong drafter still gives right text, only slowly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outrider.errors import UnsupportedError
from outrider.models.config import Rope
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.dflash.formats.speculators import INNER, TAPS
from outrider.models.dflash.formats.windows import FULL, SLIDING
from outrider.models.dflash.formats.zlab import DEEPSPEC, DFLASH, DFLASH2, NESTED

ARCHITECTURES = {"dflash": DFLASH, "dflash2": DFLASH2, "dspark": DEEPSPEC}
SPECULATORS_VERSION = "0.9.0"  # whose reader and defaults these keys are for


@dataclass(frozen=True, slots=True)
class Verifier:
    """The target, as the speculators format names it.

    Attributes:
        name: a name on the hub or a path; empty where it is not known.
        architectures: of its config.json; empty where it has none.
    """

    name: str = ""
    architectures: tuple[str, ...] = ()


def zlab_config(config: DFlashConfig) -> dict[str, Any]:
    """Return the keys of a z-lab config.json.

    Raises:
        UnsupportedError: windows and causality of the layers are a mixture that the format has no words for.
    """
    top = {
        "architectures": [ARCHITECTURES[config.kind]],
        **_layer_keys(config),
        "num_target_layers": config.num_target_layers,
        "target_hidden_size": config.target_hidden_size,
        "draft_vocab_size": config.draft_vocab_size,
        **_window_keys(config.layers),
        "is_causal": causal_for_all(config.layers),
    }
    return _without_none(top) | {NESTED: _without_none(_own(config))}


def speculators_config(config: DFlashConfig, verifier: Verifier) -> dict[str, Any]:
    """Return the keys of a config.json of the speculators library.

    Raises:
        UnsupportedError: something of the drafter that the format has no words for.
    """
    _refuse_beyond_speculators(config)
    sliding = {mask.causal for mask in config.layers if mask.window is not None}
    layer = {**_layer_keys(config), **_window_keys(config.layers), "tie_word_embeddings": False}
    own = {
        "architectures": [DFLASH],
        "speculators_model_type": "dflash",
        "speculators_version": SPECULATORS_VERSION,
        TAPS: [tap + 1 for tap in config.taps],
        "block_size": config.block_size,
        "draft_vocab_size": config.vocab_size,
        "mask_token_id": config.mask_token,
        "sample_from_anchor": config.anchor_predicts,
        "sliding_window_non_causal": sliding == {False},
        "target_hidden_size": None if config.target_hidden_size == config.hidden_size else config.target_hidden_size,
        "speculators_config": _proposals(config, verifier),
        INNER: _without_none(layer),
    }
    return _without_none(own)


def rope_keys(rope: Rope) -> dict[str, Any]:
    """Return ``rope_parameters``."""
    return {"rope_type": rope.kind, "rope_theta": rope.theta, **rope.options}


def single_window(layers: Sequence[LayerMask]) -> int | None:
    """Return the window of the layers that slide; None where none does.

    Raises:
        UnsupportedError: they have more than one.
    """
    sizes = sorted({mask.window for mask in layers if mask.window is not None})
    if len(sizes) > 1:
        raise UnsupportedError(f"Layers of windows {sizes}: all formats have one window for all; nothing is written.")
    return sizes[0] if sizes else None


def causal_for_all(layers: Sequence[LayerMask]) -> bool | None:
    """Return ``is_causal``; None where sliding layers are causal and full ones are not, the rule without it.

    Where all layers slide and are causal it is written all the same: llama.cpp's converter knows no rule.

    Raises:
        UnsupportedError: neither the rule nor one value for all says it.
    """
    causal = {mask.causal for mask in layers}
    if causal == {True}:
        return True
    if all(mask.causal == (mask.window is not None) for mask in layers):
        return None
    if len(causal) > 1:
        raise UnsupportedError(
            f"{sum(mask.causal for mask in layers)} of {len(layers)} layers are causal: in all formats causal layers "
            "are those that slide, or all, or none; nothing is written."
        )
    return False


def _layer_keys(config: DFlashConfig) -> dict[str, Any]:
    return {
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
        "rms_norm_eps": config.norm_eps,
        "rope_parameters": rope_keys(config.rope),
        "vocab_size": config.vocab_size,
    }


def _window_keys(layers: Sequence[LayerMask]) -> dict[str, Any]:
    window = single_window(layers)
    return {
        "layer_types": [FULL if mask.window is None else SLIDING for mask in layers],
        "sliding_window": window,
        "use_sliding_window": None if window is None else True,  # without it Transformers forgets the size
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


def _refuse_beyond_speculators(config: DFlashConfig) -> None:
    sliding = {mask.causal for mask in config.layers if mask.window is not None}
    beyond = {
        f"its kind, {config.kind}": config.kind != "dflash",
        "causal layers without a window": any(mask.causal and mask.window is None for mask in config.layers),
        "sliding layers of which some are causal and some not": len(sliding) > 1,
        "a vector in the masked slots": config.mask_embedding,
        "words of its own": config.draft_vocab_size is not None,
        "scaled embeddings, logits or values": {config.embedding_scale, config.output_multiplier, config.value_scale}
        != {1.0},
        "capped logits": config.soft_cap is not None,
        "attention sinks": config.sinks,
    }
    found = [what for what, is_there in beyond.items() if is_there]
    if found:
        raise UnsupportedError(
            f"The speculators format has no words for {'; '.join(found)}: nothing is written; take the z-lab format."
        )


def _proposals(config: DFlashConfig, verifier: Verifier) -> dict[str, Any]:
    greedy = {"proposal_type": "greedy", "speculative_tokens": config.max_tokens}
    return {
        "algorithm": "dflash",
        "default_proposal_method": "greedy",
        "proposal_methods": [greedy | {"verifier_accept_k": 1, "accept_tolerance": 0.0}],
        "verifier": {"name_or_path": verifier.name or None, "architectures": list(verifier.architectures)},
    }


def _without_none(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


def _unless(value: float, usual: float) -> float | None:
    return None if value == usual else value
