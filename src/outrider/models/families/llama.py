"""Family ``llama``: Llama 1 to 3, SmolLM2 and others with ``model_type: llama``."""

from typing import Any

from outrider.models.config import DecoderConfig
from outrider.models.families.base import RawConfig


class Llama:
    """Grouped-query attention, optional biases, no windows."""

    def config(self, raw: dict[str, Any]) -> DecoderConfig:
        """Map a config.json; defaults are those of Transformers' LlamaConfig."""
        read = RawConfig(raw)
        read.require("hidden_act", "silu", default="silu")
        read.require("sliding_window", None, default=None)  # GGUF files of Mistral carry it under this name
        queries, keys, size = read.heads()
        layers = read.integer("num_hidden_layers")
        bias = read.flag("attention_bias")
        return DecoderConfig(
            family="llama",
            vocab_size=read.integer("vocab_size"),
            hidden_size=read.integer("hidden_size"),
            num_layers=layers,
            num_heads=queries,
            num_kv_heads=keys,
            head_dim=size,
            intermediate_size=read.integer("intermediate_size"),
            max_positions=read.integer("max_position_embeddings", 2048),
            norm_eps=read.number("rms_norm_eps", 1e-6),
            rope=read.rope(),
            windows=(None,) * layers,
            qkv_bias=bias,
            output_bias=bias,
            mlp_bias=read.flag("mlp_bias"),
            tied=read.flag("tie_word_embeddings"),
        )
