"""Family ``qwen2``: Qwen2 and Qwen2.5 dense models."""

from typing import Any

from outrider.models.config import DecoderConfig
from outrider.models.families.base import Family, RawConfig


def sliding_windows(read: RawConfig) -> tuple[int | None, ...]:
    """Windows count only with ``use_sliding_window``, and then from ``max_window_layers`` on."""
    if not read.flag("use_sliding_window") and read.raw.get("layer_types") is None:
        return (None,) * read.integer("num_hidden_layers")
    return read.windows(from_layer=read.integer("max_window_layers", 28, least=0))


class Qwen2(Family):
    """Biases on queries, keys and values."""

    def config(self, raw: dict[str, Any]) -> DecoderConfig:
        """Map a config.json; defaults are those of Transformers' Qwen2Config."""
        read = RawConfig(raw)
        return read.decoder(max_positions=32768, windows=sliding_windows(read), qkv_bias=True)
