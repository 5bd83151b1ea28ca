"""Measurements that an engine prints in intervals, pooled: sums of counts, not means of rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from statistics import fmean, median
from typing import Any

LENGTH_DIGITS = 0.02  # relative: how far a length that is printed with two digits may be from one that is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What was counted in one interval.

    Attributes:
        accepted, drafted: tokens.
        length: mean acceptance length as printed, with the bonus token.
        per_position: cumulative rates.
    """

    accepted: float
    drafted: float
    length: float | None
    per_position: tuple[float, ...] = ()

    @property
    def rounds(self) -> float | None:
        """Rounds, which are not printed: by the draft length where drafts are all that long, else by the length."""
        by_length = self.accepted / (self.length - 1) if self.length is not None and self.length > 1 else None
        if self.per_position:
            rounds = self.drafted / len(self.per_position)
            if by_length is None or (rounds and isclose(rounds, by_length, rel_tol=LENGTH_DIGITS, abs_tol=1)):
                return rounds
            # A length near 1 is printed too coarsely to divide by.
            if self.length is not None and rounds and abs(1 + self.accepted / rounds - self.length) < 0.006:  # noqa: PLR2004 -- half a digit
                return rounds
        return by_length


def pooled(intervals: Sequence[Interval], running: Sequence[tuple[float, float, float | None]]) -> dict[str, Any]:
    """Return counters and traffic.

    Args:
        intervals: what was counted.
        running: speed in tokens/s, requests at work and prefix hit rate of the intervals with traffic.
    """
    rounds = [one.rounds for one in intervals]
    known = None if not rounds or any(value is None for value in rounds) else sum(value or 0.0 for value in rounds)
    hits = [rate for *_, rate in running if rate is not None]
    counters = {
        "rounds": known,
        "drafted": sum(one.drafted for one in intervals) if intervals else None,
        "accepted": sum(one.accepted for one in intervals) if intervals else None,
        "accepted_per_position": _rates(intervals),
        "tokens_per_second": fmean(speed for speed, *_ in running) if running else None,
        "prefix_cache_hit_rate": (hits[-1] or None) if hits else None,
    }
    busy = [requests for _, requests, _ in running if requests > 0]
    return {"counters": counters, "traffic": {"concurrency": median(busy) if busy else None}}


def _rates(intervals: Sequence[Interval]) -> list[float]:
    """Cumulative rates, each interval with the weight of its rounds; of those with the longest list."""
    longest = max((len(one.per_position) for one in intervals), default=0)
    told = [(one.rounds or 0.0, one.per_position) for one in intervals if len(one.per_position) == longest]
    total = sum(weight for weight, _ in told)
    if not longest or not total:
        return []
    return [sum(weight * rates[k] for weight, rates in told) / total for k in range(longest)]
