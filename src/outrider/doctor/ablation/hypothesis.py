"""What an observed curve would look like under a fault, under two at once, under none. Free of torch.

Conditional rates are what faults multiply: a round that came to position k keeps it with c_k.
Shape letters: K draft positions; the pair of a ``K2`` array is how many rounds came to a position and how many passed.
"""

from dataclasses import dataclass

import numpy as np

from outrider.acceptance import Interval
from outrider.doctor.ablation.counts import Counts, Numbers
from outrider.doctor.ablation.table import AblationTable, Entry

PRIOR = 0.5  # hits and misses added to what the table counted (Jeffreys)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """Something that may be the case.

    Attributes:
        parts: the faults; none for the healthy pair and for what no fault explains.
        alpha_K, beta_K: of the beta distribution of each conditional rate.
        effect: tokens a round above the healthy pair; None for what no fault explains.
        drafted: draft positions a round; None for any number.
    """

    parts: tuple[Entry, ...]
    alpha_K: Numbers
    beta_K: Numbers
    effect: Interval | None
    drafted: int | None

    @property
    def rates_K(self) -> Numbers:  # noqa: N802 -- names an array by its shape
        """Expected conditional rates."""
        rates_K: Numbers = self.alpha_K / (self.alpha_K + self.beta_K)
        return rates_K

    def expected(self, rounds: float) -> Numbers:
        """What so many rounds would show on average, [K, 2]."""
        passed_K = rounds * np.cumprod(self.rates_K)
        return np.stack((np.concatenate(([rounds], passed_K[:-1])), passed_K), 1)

    @property
    def cause(self) -> str:
        """The causes of its parts."""
        return " + ".join(sorted(entry.fault.cause for entry in self.parts))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its parts."""
        return tuple(entry.fault.label for entry in self.parts)


def healthy(table: AblationTable, noise: float) -> Hypothesis:
    """The pair as it is; ``noise`` is what counts are divided by."""
    counts = table.healthy
    return Hypothesis((), *_beta(counts, table, noise), Interval(0.0, 0.0, 0.0), counts.drafted)


def single(entry: Entry, table: AblationTable, noise: float, effect: Interval) -> Hypothesis:
    """One fault, with its effect."""
    return Hypothesis((entry,), *_beta(entry.counts, table, noise), effect, entry.counts.drafted)


def unexplained(positions: int) -> Hypothesis:
    """Any curve at all, each conditional rate as likely as any other."""
    return Hypothesis((), np.ones(positions), np.ones(positions), None, None)


def double(one: Hypothesis, other: Hypothesis, base: Hypothesis) -> Hypothesis:
    """Two faults at once: each multiplies the healthy pair's conditional rates as it does alone.

    An approximation: two faults that harm the same thing harm less together, and some amplify each other.
    """
    rates_K = (one.rates_K * other.rates_K / base.rates_K).clip(1e-3, 1 - 1e-3)
    known_K = np.minimum(one.alpha_K + one.beta_K, other.alpha_K + other.beta_K) / 2  # two uncertain factors
    length, healthy_length = (float(np.cumprod(rates).sum()) for rates in (rates_K, base.rates_K))
    value = length - healthy_length
    reaches = [_reach(hypothesis.effect) for hypothesis in (one, other)]
    low, high = (sum(reach[side] ** 2 for reach in reaches) ** 0.5 for side in (0, 1))
    effect = Interval(value, value - low, value + high)
    drafted = other.drafted if one.drafted == base.drafted else one.drafted
    return Hypothesis((*one.parts, *other.parts), rates_K * known_K, (1 - rates_K) * known_K, effect, drafted)


def _reach(effect: Interval | None) -> tuple[float, float]:
    return (0.0, 0.0) if effect is None else (effect.value - effect.low, effect.high - effect.value)


def _beta(counts: Counts, table: AblationTable, noise: float) -> tuple[Numbers, Numbers]:
    pairs_K2 = counts.widened(table.positions).pairs_K2 / noise
    return pairs_K2[:, 1] + PRIOR, pairs_K2[:, 0] - pairs_K2[:, 1] + PRIOR
