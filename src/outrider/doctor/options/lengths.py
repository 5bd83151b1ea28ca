"""Tokens a round and a second for every draft length, from the position rates of one measurement.

A chain of k drafts keeps 1 + u_1 + ... + u_k tokens a round, so a longer draft's counters say what a shorter one gives.
What it costs is bracketed: between a plain round and the measured one the cost grows with k at most linearly if all of
it is a matter of width, and not at all if none is.
"""

from dataclasses import dataclass
from math import sqrt

from outrider.doctor.observation.reading import Reading

Z = 1.96  # of a 95 % interval
RATE_DIGITS = 3  # engines print so many of a rate: what is known where the number of rounds is not


@dataclass(frozen=True, slots=True)
class Length:
    """One draft length.

    Attributes:
        tokens: drafted a round, the anchor not counted.
        per_round, low, high: tokens a round with its interval.
        per_second: lowest and highest; None where the evidence has no speeds.
    """

    tokens: int
    per_round: float
    low: float
    high: float
    per_second: tuple[float, float] | None


def lengths(reading: Reading) -> list[Length]:
    """Return what each draft length up to the measured one gives; nothing where rates are missing or contradict."""
    rates = reading.positions
    falling = all(0 <= later <= before for before, later in zip((1.0, *rates), rates, strict=False))
    if not rates or not falling or reading.conflicts:
        return []
    return [_length(reading, k) for k in range(1, len(rates) + 1)]


def best(found: list[Length]) -> Length | None:
    """Return the length with the most tokens a second in the middle of its bracket; None without speeds."""
    timed = [(sum(one.per_second), one) for one in found if one.per_second is not None]
    return max(timed, key=lambda pair: pair[0])[1] if timed else None


def enough(found: list[Length], share: float) -> Length | None:
    """Return the shortest length that keeps this share of the tokens a round."""
    return next((one for one in found if one.per_round >= share * found[-1].per_round), None)


def _length(reading: Reading, k: int) -> Length:
    rates = reading.positions[:k]
    mean = sum(rates)
    if reading.rounds:
        # Of min(a, k), with a the accepted tokens of a round.
        variance = max(0.0, sum((2 * j + 1) * rate for j, rate in enumerate(rates)) - mean**2)
        reach = Z * sqrt(variance / reading.rounds)
    else:
        reach = k * 0.5 * 10**-RATE_DIGITS
    low, high = max(1.0, 1 + mean - reach), min(1.0 + k, 1 + mean + reach)
    return Length(k, 1 + mean, low, high, _per_second(reading, k, low, high))


def _per_second(reading: Reading, k: int, low: float, high: float) -> tuple[float, float] | None:
    speed, baseline, tau = reading.speed, reading.baseline, reading.tau
    longest = len(reading.positions)
    if not speed or not baseline or tau is None:
        return None
    cost = tau * baseline / speed  # a measured round in plain ones
    if cost < 1:  # rounds that cost less than plain ones were not measured side by side
        return None
    if k == longest:
        return speed, speed
    cheapest = 1 + (cost - 1) * k / longest
    return low * baseline / cost, high * baseline / cheapest
