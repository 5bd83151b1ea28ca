"""Rotary position embedding: angles for any positions.

Sources: RoFormer (Su et al. 2021); llama3 frequencies as Meta's Llama 3.1; YaRN (Peng et al. 2023).
Shape letters: B batch rows, N nodes, D head size.
"""

import math
from typing import Any

import torch
from torch import Tensor

from outrider.models.config import Rope


def frequencies(rope: Rope, head_dim: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, float]:
    """Return the D/2 angular frequencies (radians a position) and the factor on cos and sin."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64).to(dtype) / head_dim
    plain = 1.0 / rope.theta**exponents
    if rope.kind == "linear":
        return plain / float(rope.options["factor"]), 1.0
    if rope.kind == "llama3":
        return _llama3(plain, rope.options), 1.0
    if rope.kind == "yarn":
        return _yarn(plain, rope.theta, head_dim, rope.options)
    return plain, 1.0


def _llama3(plain: Tensor, options: dict[str, Any]) -> Tensor:
    """Slow frequencies are divided by the factor, fast ones kept, those between blended."""
    factor, low, high = (float(options[k]) for k in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = float(options["original_max_position_embeddings"]) * plain / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * keep + plain / factor * (1 - keep)


def _yarn(plain: Tensor, theta: float, head_dim: int, options: dict[str, Any]) -> tuple[Tensor, float]:
    """Blend by the number of turns within the original context; attention is rescaled by the factor's logarithm."""
    factor = float(options["factor"])
    original = float(options["original_max_position_embeddings"])

    def dimension(turns: float) -> float:
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = (
        dimension(options.get("beta_fast") or 32.0),
        dimension(options.get("beta_slow") or 1.0),
    )
    if options.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    ramp = (torch.arange(head_dim // 2).to(plain) - low) / max(high - low, 0.001)
    keep = 1 - ramp.clamp(0, 1)
    return plain * keep + plain / factor * (1 - keep), _yarn_scale(factor, options)


def _yarn_scale(factor: float, options: dict[str, Any]) -> float:
    if options.get("attention_factor") is not None:
        return float(options["attention_factor"])

    def scale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    if options.get("mscale") and options.get("mscale_all_dim"):
        return scale(options["mscale"]) / scale(options["mscale_all_dim"])
    return scale(1.0)


class Angles:
    """cos and sin of positions, computed once a pass and shared by all layers."""

    def __init__(self, rope: Rope, head_dim: int, device: torch.device, precision: torch.dtype = torch.float32) -> None:
        frequency, self._scale = frequencies(rope, head_dim, precision)
        self._frequency = frequency.to(device)

    def __call__(self, positions_BN: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return cos, and sin with its first half negated, [B, N, 1, D] in ``dtype``."""
        angles = (positions_BN[..., None].to(self._frequency.dtype) * self._frequency)[:, :, None]
        cos, sin = angles.cos() * self._scale, angles.sin() * self._scale
        return torch.cat((cos, cos), -1).to(dtype), torch.cat((-sin, sin), -1).to(dtype)
