"""All that may be the case, weighed against one observation. Free of torch."""

from collections.abc import Mapping, Sequence

import numpy as np

from outrider.acceptance import Interval
from outrider.doctor.ablation.counts import effective
from outrider.doctor.ablation.hypothesis import Hypothesis, doubles, healthy, single, unexplained
from outrider.doctor.ablation.likelihood import log_likelihoods
from outrider.doctor.ablation.table import AblationTable

# Expected log-likelihood ratio below which two hypotheses count as not to be told apart. The ratio is about normal,
# its variance twice its mean: one chance in twenty of taking the wrong one is left at 2 * 1.645**2.
TELLING = 5.4
SINGLE, DOUBLE, HEALTHY, NOTHING = 0.6, 0.1, 0.2, 0.1  # shares of the prior


class Weighing:
    """One observation against one table.

    Args:
        rounds, rates: what was observed.
        table: of the pair.
        effects: of its entries, on the observed texts.
        shared: share of the observed rounds that are on the table's own texts.
        priors: weight of each cause.

    Attributes:
        singles, visible: the faults, and those that so many rounds can show.
        base, nothing: the healthy pair, and what no fault explains.
        hypotheses, probabilities: everything, with its probability.
    """

    def __init__(  # noqa: PLR0917 -- all that is known of one case
        self,
        rounds: float,
        rates: Sequence[float],
        table: AblationTable,
        effects: Sequence[Interval],
        shared: float,
        priors: Mapping[str, float],
    ) -> None:
        noise = table.spread.rounds * (1 - shared)
        texts = effective(table.healthy.rounds_X)
        # Texts of the observation, at the table's rounds a text; both lots of texts have their difficulty.
        observed_texts = texts * rounds / table.healthy.rounds
        self._difficulty = table.spread.text * ((1 - shared) * (1 / texts + 1 / observed_texts)) ** 0.5
        self._rounds, self._drafted = rounds / noise, len(rates)
        curve = np.array((1.0, *rates, *[0.0] * (table.positions - len(rates))))
        self._seen_K2 = self._rounds * np.stack((curve[:-1], curve[1:]), 1)
        self.base, self.nothing = healthy(table, noise), unexplained(table.positions)
        pairs = zip(table.entries, effects, strict=True)
        self.singles = [single(entry, table, noise, effect) for entry, effect in pairs]
        self.visible = [one for one in self.singles if not self.not_told_from(one, [self.base])]
        pairs_of = doubles(self.visible, self.base)
        self.hypotheses = [*self.singles, *pairs_of, self.base, self.nothing]
        prior = [*_shared(self.singles, SINGLE, priors), *_shared(pairs_of, DOUBLE, priors), HEALTHY, NOTHING]
        self._logs = log_likelihoods(self.hypotheses, self._seen_K2, self._drafted, self._difficulty)
        self.probabilities = self._posterior(prior)

    def _posterior(self, prior: list[float]) -> list[float]:
        weights = np.array(prior) * np.exp(self._logs - self._logs.max())
        probabilities: list[float] = (weights / weights.sum()).tolist()
        return probabilities

    def not_told_from(self, one: Hypothesis, others: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return those that so many rounds of the first would not be expected to rule out."""
        expected_K2 = one.expected(self._rounds)
        logs = log_likelihoods([one, *others], expected_K2, one.drafted, self._difficulty).tolist()
        return [other for other, log in zip(others, logs[1:], strict=True) if logs[0] - log < TELLING]

    def above_healthy(self, index: int) -> float:
        """Log-likelihood of a hypothesis above that of the healthy pair."""
        return float(self._logs[index] - self._logs[-2])


def _shared(hypotheses: Sequence[Hypothesis], share: float, priors: Mapping[str, float]) -> list[float]:
    """Share a prior out over causes by their weight, within a cause evenly."""
    names = [one.cause for one in hypotheses]
    counts = {name: names.count(name) for name in names}
    weights = {name: float(np.prod([priors.get(cause, 1.0) for cause in name.split(" + ")])) for name in counts}
    total = sum(weights.values()) or 1.0
    return [share * weights[name] / total / counts[name] for name in names]
