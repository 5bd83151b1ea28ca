"""Family ``qwen3_5``: the text model of Qwen3.5 and Qwen3.6, dense.

Three of four layers are Gated DeltaNet, the others gated attention that sees everything: no layer has a window.
A checkpoint may hold a vision tower, which is passed over, and multi-token prediction heads (``mtp.*``).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.config import DecoderConfig, DeltaSizes
from outrider.models.families.base import Family, RawConfig

if TYPE_CHECKING:
    from outrider.checkpoint.checkpoint import TensorInfo

LINEAR, FULL = "linear_attention", "full_attention"
SHARE = "partial_rotary_factor"
# Where images stand in a text; in a text alone all three coordinates are the position.
IMAGE_KEYS = ("mrope_section", "mrope_interleaved")
TEXT, VISION = "model.language_model.", ("model.visual.", "visual.")


class Qwen35(Family):
    """Gated DeltaNet and gated attention, norms that scale by 1 + their weights, RoPE on a part of each head."""

    beside = ("mtp.",)

    def config(self, raw: dict[str, Any]) -> DecoderConfig:
        """Map a config.json; defaults are those of Transformers' Qwen3_5TextConfig."""
        raw, share = _text(raw)
        read = RawConfig(raw)
        _refuse_variants(read)
        size = read.heads(256)[2]
        kinds = _kinds(read)
        return read.decoder(
            max_positions=32768,
            windows=(None,) * len(kinds),
            head_dim=256,
            qk_norm=True,
            gated=True,
            rotary_size=_rotary_size(size, share),
            centred_norms=True,
            delta=_delta(read),
            delta_layers=frozenset(layer for layer, kind in enumerate(kinds) if kind == LINEAR),
            mtp_layers=read.integer("mtp_num_hidden_layers", 0, least=0),
        )

    def tensors(self, found: "Mapping[str, TensorInfo]") -> "dict[str, TensorInfo]":
        """Give the text model's tensors their names in a text-only checkpoint, and leave the vision tower out."""
        return {
            name.replace(TEXT, "model.", 1) if name.startswith(TEXT) else name: replace(
                info, stored_name=info.stored_name or name
            )
            for name, info in found.items()
            if not name.startswith(VISION)
        }


def _text(raw: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The text model's keys, and the share of a head that RoPE rotates."""
    inner = raw.get("text_config")
    if inner is not None and not isinstance(inner, dict):
        raise CheckpointError(f"Config: expected text_config to be an object; found {inner!r}.")
    outer = {key: raw[key] for key in ("tie_word_embeddings",) if key in raw}
    text = {**outer, **(raw if inner is None else inner), "model_type": "qwen3_5"}
    rope = text.get("rope_parameters") or text.get("rope_scaling")
    share = text.pop(SHARE, None)
    if isinstance(rope, dict):
        share = rope.get(SHARE, share)
        text["rope_parameters"] = {key: value for key, value in rope.items() if key not in (*IMAGE_KEYS, SHARE)}
    return text, 0.25 if share is None else share


def _refuse_variants(read: RawConfig) -> None:
    if read.raw.get("num_experts"):
        raise UnsupportedError(
            "Qwen3.5 with experts (mixture of experts) is not run here; expected a dense model. vLLM and SGLang run it."
        )
    read.require("attention_bias", False, default=False)
    read.require("attn_output_gate", True, default=True)
    # The activation of the DeltaNet's gate, which is not the attention's; both names mean SiLU.
    if read.raw.get("output_gate_type") != "silu":
        read.require("output_gate_type", "swish", default="swish")
    read.require("mtp_use_dedicated_embeddings", False, default=False)


def _kinds(read: RawConfig) -> list[str]:
    """The kind of each layer."""
    layers, every = read.integer("num_hidden_layers"), read.integer("full_attention_interval", 4)
    kinds = read.raw.get("layer_types")
    if kinds is None:
        return [FULL if (layer + 1) % every == 0 else LINEAR for layer in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise CheckpointError(
            f"Config: expected layer_types to be a list of {layers} kinds, one a layer; found {kinds!r}."
        )
    unknown = [kind for kind in kinds if kind not in {LINEAR, FULL}]
    if unknown:
        raise UnsupportedError(
            f"Layer type {unknown[0]!r} of family 'qwen3_5' is not supported; expected {LINEAR} or {FULL}."
        )
    return kinds


def _rotary_size(head: int, share: Any) -> int:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise CheckpointError(f"Config: expected {SHARE} to be above 0 and at most 1; found {share!r}.")
    size = int(head * share)
    if size < 2 or size % 2:  # noqa: PLR2004 -- a pair
        raise CheckpointError(
            f"Config: {SHARE}={share} of head_dim={head} is {size}; expected an even number of rotated dimensions."
        )
    return size


def _delta(read: RawConfig) -> DeltaSizes:
    keys, values = read.integer("linear_num_key_heads", 16), read.integer("linear_num_value_heads", 32)
    if values % keys:
        raise CheckpointError(f"Config: linear_num_value_heads={values} is no multiple of linear_num_key_heads={keys}.")
    return DeltaSizes(
        keys,
        values,
        read.integer("linear_key_head_dim", 128),
        read.integer("linear_value_head_dim", 128),
        read.integer("linear_conv_kernel_dim", 4, least=2),
    )
