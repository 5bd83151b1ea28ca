"""Family ``llama``: Llama 1 to 3, SmolLM2 and others with ``model_type: llama``."""

from typing import Any

from outrider.models.config import DecoderConfig
from outrider.models.families.base import Family, RawConfig


class Llama(Family):
    """Grouped-query attention, optional biases, no windows."""

    def config(self, raw: dict[str, Any]) -> DecoderConfig:
        """Map a config.json; defaults are those of Transformers' LlamaConfig."""
        read = RawConfig(raw)
        read.require("sliding_window", None, default=None)  # GGUF files of Mistral carry it under this name
        bias = read.flag("attention_bias")
        return read.decoder(
            max_positions=2048,
            windows=(None,) * read.integer("num_hidden_layers"),
            qkv_bias=bias,
            output_bias=bias,
            mlp_bias=read.flag("mlp_bias"),
        )
