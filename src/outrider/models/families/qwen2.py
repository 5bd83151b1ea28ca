"""Family ``qwen2``: Qwen2 and Qwen2.5 dense models."""

from typing import Any

from outrider.models.config import DecoderConfig
from outrider.models.families.base import RawConfig


def sliding_windows(read: RawConfig) -> tuple[int | None, ...]:
    """Windows count only with ``use_sliding_window``, and then from ``max_window_layers`` on."""
    if not read.flag("use_sliding_window") and "layer_types" not in read.raw:
        return (None,) * read.integer("num_hidden_layers")
    return read.windows(from_layer=int(read.raw.get("max_window_layers", 28)))


class Qwen2:
    """Biases on queries, keys and values."""

    def config(self, raw: dict[str, Any]) -> DecoderConfig:
        """Map a config.json; defaults are those of Transformers' Qwen2Config."""
        read = RawConfig(raw)
        read.require("hidden_act", "silu", default="silu")
        queries, keys, size = read.heads()
        return DecoderConfig(
            family="qwen2",
            vocab_size=read.integer("vocab_size"),
            hidden_size=read.integer("hidden_size"),
            num_layers=read.integer("num_hidden_layers"),
            num_heads=queries,
            num_kv_heads=keys,
            head_dim=size,
            intermediate_size=read.integer("intermediate_size"),
            max_positions=read.integer("max_position_embeddings", 32768),
            norm_eps=read.number("rms_norm_eps", 1e-6),
            rope=read.rope(),
            windows=sliding_windows(read),
            qkv_bias=True,
            tied=read.flag("tie_word_embeddings"),
        )
