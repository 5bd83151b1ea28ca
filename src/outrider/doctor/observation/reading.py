"""One engine's numbers as one definition (docs/glossary.md): tau with the bonus token, r without, u_k cumulative."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from dataclasses import dataclass
from itertools import pairwise
from math import isclose

from outrider.doctor.evidence import Counters

TOLERANCE = 0.08
"""Relative; engines print two digits and windows differ, so closer agreement is not asked for."""


@dataclass(frozen=True)
class Reading:
    """One measurement.

    Attributes:
        tau, rate: acceptance length and rate.
        positions: u_1, u_2, ...
        speed, baseline: tokens a second, with and without speculation.
        hits: prefix cache hit rate.
        rounds: sample size, where it is known or follows.
        conflicts: pairs of numbers that cannot both be right, in words.
    """

    tau: float | None = None
    rate: float | None = None
    positions: tuple[float, ...] = ()
    speed: float | None = None
    baseline: float | None = None
    hits: float | None = None
    rounds: float | None = None
    conflicts: tuple[str, ...] = ()

    @property
    def speedup(self) -> float | None:
        """Speed over baseline."""
        return self.speed / self.baseline if self.speed is not None and self.baseline else None

    @property
    def first(self) -> float | None:
        """u_1."""
        return self.positions[0] if self.positions else None

    @property
    def conditional(self) -> tuple[float, ...]:
        """c_k, as long as the position before was ever accepted."""
        before = (1.0, *self.positions)
        return tuple(u / b for u, b in zip(self.positions, before, strict=False) if b > 0)

    @property
    def measured(self) -> bool:
        """Acceptance is known in some form."""
        return self.tau is not None or self.rate is not None or bool(self.positions)

    @property
    def nothing_accepted(self) -> bool:
        """Not one draft token, as far as the digits show."""
        low = (self.tau is not None and self.tau < 1.005, self.rate is not None and self.rate < 0.0005)
        return any(low) and not (self.first or 0) > 0.005

    @property
    def collapsed(self) -> bool:
        """Next to nothing accepted: no working drafter on any text does that."""
        if self.first is not None:
            return self.first < 0.1
        if self.rate is not None:
            return self.rate < 0.03
        return self.tau is not None and self.tau < 1.15

    @property
    def low(self) -> bool:
        """Few tokens accepted: under a third of what a trained drafter keeps on mixed text.

        By the length where it is known: a rate falls with every token that is drafted beyond.
        """
        if self.collapsed:
            return True
        return self.tau < 1.7 if self.tau is not None else self.rate is not None and self.rate < 0.2


def read(counters: Counters, drafted: int | None) -> Reading:
    """Bring counters to one definition; ``drafted`` is the draft length a round, where known."""
    rounds = counters.rounds
    positions = _positions(counters, rounds)
    lengths = _lengths(counters, positions, drafted)
    tau = next(iter(lengths.values()), None)
    rates = _rates(counters, tau, drafted)
    rate = next(iter(rates.values()), None)
    if rounds is None and counters.accepted and tau and tau > 1:
        rounds = counters.accepted / (tau - 1)
    return Reading(
        tau=tau, rate=rate, positions=positions, rounds=rounds,
        speed=counters.tokens_per_second, baseline=counters.baseline_tokens_per_second,
        hits=counters.prefix_cache_hit_rate, conflicts=_conflicts(lengths, rates, positions),
    )  # fmt: skip


def _positions(counters: Counters, rounds: float | None) -> tuple[float, ...]:
    """u_k from counts or rates; counts without rounds have no scale and are left out."""
    given = counters.accepted_per_position
    if not given or max(given) <= 1:
        return tuple(given)
    return tuple(count / rounds for count in given) if rounds else ()


def _lengths(counters: Counters, positions: tuple[float, ...], drafted: int | None) -> dict[str, float]:
    """Every way in which the acceptance length follows, the most direct first."""
    found: dict[str, float] = {}
    if counters.rounds and counters.accepted is not None:
        found["1 + accepted / rounds"] = 1 + counters.accepted / counters.rounds
    if counters.mean_acceptance_length is not None:
        found["the reported acceptance length"] = counters.mean_acceptance_length
    if positions and (not drafted or len(positions) >= drafted):
        found["1 + the sum of the position rates"] = 1 + sum(positions)
    if counters.acceptance_rate is not None and drafted and counters.acceptance_rate <= 1:
        found["1 + rate * draft length"] = 1 + counters.acceptance_rate * drafted
    if not found and positions:
        found["1 + the sum of the position rates"] = 1 + sum(positions)
    return found


def _rates(counters: Counters, tau: float | None, drafted: int | None) -> dict[str, float]:
    found: dict[str, float] = {}
    if counters.drafted and counters.accepted is not None:
        found["accepted / drafted"] = counters.accepted / counters.drafted
    if counters.acceptance_rate is not None:
        found["the reported acceptance rate"] = counters.acceptance_rate
    if not found and tau is not None and drafted:
        found["(length - 1) / draft length"] = (tau - 1) / drafted
    return found


def _conflicts(lengths: dict[str, float], rates: dict[str, float], positions: tuple[float, ...]) -> tuple[str, ...]:
    found = []
    for values, what in ((lengths, "acceptance length"), (rates, "acceptance rate")):
        (first, value), *others = list(values.items()) or [("", 0.0)]
        found += [
            f"{first} gives an {what} of {value:.3g}, {name} gives {other:.3g}"
            for name, other in others
            if not isclose(value, other, rel_tol=TOLERANCE, abs_tol=0.02)
        ]
    if any(rate > 1 for rate in rates.values()):
        found.append("an acceptance rate above 1")
    if any(length < 1 for length in lengths.values()):
        found.append("an acceptance length below 1: the bonus token is not counted in it")
    if any(later > earlier + 0.02 for earlier, later in pairwise(positions)):
        found.append("position rates that rise: they are not cumulative, or rounds drafted unlike lengths")
    return tuple(found)
