"""Speeds from timed work, and the ratio of two paired series with its interval.

Times are pooled (tokens over seconds), never a mean of speeds. Knows no engine and reads no clock.
"""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from outrider.acceptance import Interval, ratio_interval, resampled_sums
from outrider.errors import UsageError


class Work(NamedTuple):
    """Tokens made and the seconds they took."""

    tokens: int
    seconds: float


def typical(repeats: Sequence[Work]) -> Work:
    """The repeat of median time; the faster of the two in the middle of an even number."""
    return sorted(repeats, key=lambda work: work.seconds)[(len(repeats) - 1) // 2]


def median_or_none(values: Iterable[float]) -> float | None:
    """Median, or None of nothing."""
    found = list(values)
    return median(found) if found else None


def speed(series: Iterable[Work]) -> float | None:
    """Tokens per second, pooled; None when no time was measured."""
    works = list(series)
    seconds = sum(work.seconds for work in works)
    return sum(work.tokens for work in works) / seconds if seconds > 0 else None


def speed_ratio(
    ours: Sequence[Work],
    base: Sequence[Work],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Speed of ``ours`` over the speed of ``base``; pairs are resampled together.

    Args:
        ours: One entry a prompt (or a repeat).
        base: The same prompts in the same order.
        confidence: Of the percentile bootstrap.
        resamples: Of the percentile bootstrap.
        seed: Of the percentile bootstrap.
    """
    if len(ours) != len(base) or not ours:
        raise UsageError(
            f"A paired ratio needs two series of one length, at least 1; found {len(ours)} and "
            f"{len(base)}. Measure both on the same prompts."
        )
    pairs = [[*work, *other] for work, other in zip(ours, base, strict=True)]
    totals = np.array(pairs, dtype=np.float64).sum(axis=0)
    if not totals.all():
        raise UsageError(
            "A speed ratio needs tokens and time on both sides; found "
            f"{totals[0]:.0f} tokens in {totals[1]} s against {totals[2]:.0f} in {totals[3]} s."
        )
    sums = resampled_sums(pairs, resamples, seed)
    return ratio_interval(
        sums[:, 0] * sums[:, 3],
        sums[:, 1] * sums[:, 2],
        confidence,
        float(totals[0] * totals[3] / (totals[1] * totals[2])),
    )
