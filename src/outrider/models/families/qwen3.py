"""Family ``qwen3``: Qwen3 dense models."""

from typing import Any

from outrider.models.config import DecoderConfig
from outrider.models.families.base import RawConfig
from outrider.models.families.qwen2 import sliding_windows


class Qwen3:
    """Norms on queries and keys; a head size of its own."""

    def config(self, raw: dict[str, Any]) -> DecoderConfig:
        """Map a config.json; defaults are those of Transformers' Qwen3Config."""
        read = RawConfig(raw)
        read.require("hidden_act", "silu", default="silu")
        queries, keys, size = read.heads(default_head_dim=128)
        bias = read.flag("attention_bias")
        return DecoderConfig(
            family="qwen3",
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
            qkv_bias=bias,
            output_bias=bias,
            qk_norm=True,
            tied=read.flag("tie_word_embeddings"),
        )
