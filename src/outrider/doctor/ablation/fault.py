"""A fault that is put into a pair on purpose: its name, its cause, how it is put in. Free of torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from outrider.doctor.verdict import Cause
from outrider.models.dflash.config import DFlashConfig

Misread = Callable[[DFlashConfig], DFlashConfig]
Format = Literal["bf16", "fp16", "fp8", "int8", "int4"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What is done beside reading the config wrongly; every default leaves the pair as it is.

    Attributes:
        dead_tap: which of the taps, in the config's order, gives zeros.
        feature_shift: rows by which features come late (negative: early).
        feature_format, weight_format, cache_format: what features, drafter weights, context keys are rounded to.
        feature_noise: standard deviation of noise on features, in those of each tap.
        weight_noise: share of each matrix that is noise: 1 is untrained.
        dead_layer: a layer whose weights are missing.
        norm_missing: whether the context features go without their norm.
        lost_before: context positions below this are lost.
        lost_newest: so many context positions next to the anchor are lost.
        kept_newest: context further back than so many positions is lost; 0 loses all of it.
        block_shift: positions that the block lies too far.
        rotary_share: part of a head that is rotated.
        head, embedding: what stands in the place of the target's.
        temperature: of the target's law.
        drafted: tokens drafted a round.
    """

    dead_tap: int | None = None
    feature_shift: int = 0
    feature_format: Format | None = None
    feature_noise: float = 0.0
    weight_format: Format | None = None
    weight_noise: float = 0.0
    cache_format: Format | None = None
    dead_layer: int | None = None
    norm_missing: bool = False
    lost_before: int = 0
    lost_newest: int = 0
    kept_newest: int | None = None
    block_shift: int = 0
    rotary_share: float = 1.0
    head: Literal["shared", "random", "rolled"] = "shared"
    embedding: Literal["shared", "random"] = "shared"
    temperature: float = 0.0
    drafted: int | None = None


NONE = Damage()


def _unchanged(config: DFlashConfig) -> DFlashConfig:
    return config


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault at one strength.

    Attributes:
        name: of the fault, without its strength.
        strength: how much of it, in words.
        cause: the spec's.
        how: how it is put in.
        misread: the config that is taken for the drafter's own.
        damage: what else is done.
    """

    name: str
    strength: str
    cause: Cause
    how: str
    misread: Misread = _unchanged
    damage: Damage = NONE

    @property
    def label(self) -> str:
        """Name and strength."""
        return f"{self.name}: {self.strength}" if self.strength else self.name
