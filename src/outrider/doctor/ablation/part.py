"""One measurement against the table of texts of its kind: what it makes of hypotheses. Free of torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outrider.acceptance import Interval
from outrider.doctor.ablation.counts import Numbers, effective
from outrider.doctor.ablation.hypothesis import Hypothesis, double, healthy, single, unexplained
from outrider.doctor.ablation.likelihood import log_likelihoods
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.errors import UsageError


@dataclass(frozen=True, slots=True)
class Observed:
    """Counters of one measurement.

    Attributes:
        rounds: verification rounds.
        rates: u_1, u_2, ..., cumulative.
    """

    rounds: float
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        falling = all(0 <= later <= before for before, later in zip((1.0, *self.rates), self.rates, strict=False))
        if not self.rounds > 0 or not self.rates or not falling:
            raise UsageError(
                "An observed curve needs rounds above 0 and cumulative rates between 0 and 1 that do not rise; found "
                f"{self.rounds:g} rounds and {', '.join(f'{rate:g}' for rate in self.rates) or 'no rates'}."
            )

    @property
    def length(self) -> float:
        """Acceptance length."""
        return 1 + sum(self.rates)

    def __add__(self, other: "Observed") -> "Observed":
        """Pool two measurements."""
        rounds = self.rounds + other.rounds
        longest = max(len(self.rates), len(other.rates))
        one, two = (np.pad(some.rates, (0, longest - len(some.rates))) for some in (self, other))
        pooled = (self.rounds * one + other.rounds * two) / rounds
        return Observed(rounds, tuple(pooled.tolist()))


class Part:
    """A measurement, and the table of the texts that it is like.

    Args:
        observed: the measurement.
        table: of the pair on such texts.
        shared: share of the observed rounds that are on the table's own texts.

    Attributes:
        base: the healthy pair.
        singles: each fault.
    """

    def __init__(self, observed: Observed, table: AblationTable, shared: float) -> None:
        if len(observed.rates) > table.positions:
            raise UsageError(
                f"The curve has {len(observed.rates)} positions, the table {table.positions}: more was drafted than "
                "was tried. Ablate with a block as long."
            )
        noise = table.spread.rounds * (1 - shared)
        texts = effective(table.healthy.rounds_X)
        # Texts of the observation, at the table's rounds a text; both lots of texts have their difficulty.
        observed_texts = texts * observed.rounds / table.healthy.rounds
        self._difficulty = table.spread.text * ((1 - shared) * (1 / texts + 1 / observed_texts)) ** 0.5
        self._rounds, self._drafted = observed.rounds / noise, len(observed.rates)
        curve = np.array((1.0, *observed.rates, *[0.0] * (table.positions - len(observed.rates))))
        self._seen_K2 = self._rounds * np.stack((curve[:-1], curve[1:]), 1)
        self._nothing = unexplained(table.positions)
        self.base = healthy(table, noise)
        self.singles = [
            single(entry, table, noise, effect_of(entry, table, observed.rounds, shared)) for entry in table.entries
        ]

    def hypotheses(self, pairs: Sequence[tuple[int, int]]) -> list[Hypothesis]:
        """Return each fault, pairs of them by their places, the healthy pair, and that nothing explains it."""
        both = [double(self.singles[one], self.singles[other], self.base) for one, other in pairs]
        return [*self.singles, *both, self.base, self._nothing]

    def logs(self, hypotheses: Sequence[Hypothesis]) -> Numbers:
        """Log-likelihood of each."""
        return log_likelihoods(hypotheses, self._seen_K2, self._drafted, self._difficulty)

    def gaps(self, one: Hypothesis, others: Sequence[Hypothesis]) -> Numbers:
        """Log-likelihood that the first has above each of the others, expected where it is true."""
        expected_K2 = one.expected(self._rounds)
        logs = log_likelihoods([one, *others], expected_K2, one.drafted, self._difficulty)
        gaps: Numbers = logs[0] - logs[1:]
        return gaps


def effect_of(entry: Entry, table: AblationTable, rounds: float, shared: float = 0.0) -> Interval:
    """Tokens a round that a fault brings on the texts of so many observed rounds, with its interval."""
    wider = ((1 - shared) * (1 + entry.counts.rounds / rounds)) ** 0.5
    return entry.counts.difference(table.healthy, wider=wider)
