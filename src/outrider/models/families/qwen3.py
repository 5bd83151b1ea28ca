"""Family ``qwen3``: Qwen3 dense models."""

from typing import Any

from outrider.models.config import DecoderConfig
from outrider.models.families.base import Family, RawConfig
from outrider.models.families.qwen2 import sliding_windows


class Qwen3(Family):
    """Norms on queries and keys; a head size of its own."""

    def config(self, raw: dict[str, Any]) -> DecoderConfig:
        """Map a config.json; defaults are those of Transformers' Qwen3Config."""
        read = RawConfig(raw)
        bias = read.flag("attention_bias")
        return read.decoder(
            max_positions=32768,
            windows=sliding_windows(read),
            head_dim=128,
            qkv_bias=bias,
            output_bias=bias,
            qk_norm=True,
        )
