"""All that may be the case, weighed against what was observed. Free of torch."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import log

import numpy as np

from outrider.doctor.ablation.counts import Numbers
from outrider.doctor.ablation.hypothesis import Hypothesis
from outrider.doctor.ablation.part import Part

SURE = 1.645  # standard deviations: one chance in twenty of taking the wrong one is left
SINGLE, DOUBLE, HEALTHY, NOTHING = 0.6, 0.1, 0.2, 0.1  # shares of the prior


class Weighing:
    """Measurements of one deployment against tables of one pair, all with the same faults.

    Args:
        whole: all measurements pooled: the hypotheses that are named, and their effects.
        parts: the measurements, each with the table of texts of its kind.
        priors: weight of each cause.

    Attributes:
        visible: the faults that so many rounds can show, by their places.
        hypotheses, probabilities: everything, with its probability: first the faults in their order, the healthy pair
            and the unexplained last.
    """

    def __init__(self, whole: Part, parts: Sequence[Part], priors: Mapping[str, float]) -> None:
        self._parts, self.num_singles = parts, len(whole.singles)
        alone = _shared(whole.singles, SINGLE, priors)
        self._built = [part.hypotheses(()) for part in parts]
        needed = [telling(HEALTHY / share) if share else np.inf for share in alone]
        healthy = len(whole.singles)
        self.visible = [place for place, least in enumerate(needed) if self._gaps(place, [healthy])[0] >= least]
        causes = [one.cause for one in whole.singles]
        pairs = [(one, other) for one, other in combinations(self.visible, 2) if causes[one] != causes[other]]
        self.hypotheses = whole.hypotheses(pairs)
        self._built = [part.hypotheses(pairs) for part in parts]
        both = _shared(self.hypotheses[self.num_singles : -2], DOUBLE, priors)
        self._logs = sum((part.logs(built) for part, built in self._pairs()), np.zeros(len(self.hypotheses)))
        self.probabilities = self._posterior([*alone, *both, HEALTHY, NOTHING])

    def not_told_from(self, place: int, others: Sequence[int]) -> list[int]:
        """Return those that so many rounds of the first would not be expected to rule out."""
        gaps = self._gaps(place, others)
        return [other for other, gap in zip(others, gaps, strict=True) if gap < telling(1.0)]

    def above_healthy(self, place: int) -> float:
        """Log-likelihood of a hypothesis above that of the healthy pair."""
        return float(self._logs[place] - self._logs[-2])

    def _posterior(self, prior: list[float]) -> list[float]:
        weights = np.array(prior) * np.exp(self._logs - self._logs.max())
        probabilities: list[float] = (weights / weights.sum()).tolist()
        return probabilities

    def _gaps(self, place: int, others: Sequence[int]) -> Numbers:
        gaps = [part.gaps(built[place], [built[other] for other in others]) for part, built in self._pairs()]
        total: Numbers = np.sum(gaps, axis=0)
        return total

    def _pairs(self) -> "zip[tuple[Part, list[Hypothesis]]]":
        return zip(self._parts, self._built, strict=True)


def telling(odds: float) -> float:
    """Expected log-likelihood ratio from which a hypothesis is nearly always taken where it is true.

    The ratio x is about normal with variance 2 x: it has to lie ``SURE`` deviations above the log of the prior odds.

    Args:
        odds: prior odds for the other one.
    """
    lead = SURE * 2**0.5
    root: float = (lead + (lead**2 + 4 * log(max(odds, 1.0))) ** 0.5) / 2
    return root * root


def _shared(hypotheses: Sequence[Hypothesis], share: float, priors: Mapping[str, float]) -> list[float]:
    """Share a prior out over causes by their weight, within a cause evenly."""
    names = [one.cause for one in hypotheses]
    counts = {name: names.count(name) for name in names}
    weights = {name: float(np.prod([priors.get(cause, 1.0) for cause in name.split(" + ")])) for name in counts}
    total = sum(weights.values()) or 1.0
    return [share * weights[name] / total / counts[name] for name in names]
