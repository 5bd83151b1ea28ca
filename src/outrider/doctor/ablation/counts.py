"""Hits of every text, and what follows from them: curve, acceptance length, differences. Free of torch.

Shape letters: X texts, K draft positions, R resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from outrider.acceptance import Acceptance, Interval

RESAMPLES = 2000
CONFIDENCE = 0.95
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """One measurement, text by text.

    Attributes:
        rounds_X: rounds of each text.
        hits_XK: how many of them accepted positions 1..k.
    """

    rounds_X: Numbers
    hits_XK: Numbers

    @classmethod
    def of(cls, acceptance: Acceptance, drafted: int) -> "Counts":
        """Count the rounds of each text, of which the longest draft so many tokens."""
        accepted = [np.array([a_round.accepted for a_round in rounds]) for rounds in acceptance.sequences]
        hits = [[float((some >= k).sum()) for k in range(1, drafted + 1)] for some in accepted]
        return cls(np.array([float(len(some)) for some in accepted]), np.array(hits).reshape(len(accepted), drafted))

    def some(self, texts: Sequence[int]) -> "Counts":
        """Return those of some texts."""
        return Counts(self.rounds_X[list(texts)], self.hits_XK[list(texts)])

    def widened(self, positions: int) -> "Counts":
        """Return them with positions that were never drafted, and so never hit."""
        more = max(0, positions - self.drafted)
        return Counts(self.rounds_X, np.pad(self.hits_XK, ((0, 0), (0, more))))

    @property
    def drafted(self) -> int:
        """Draft positions of a round."""
        return int(self.hits_XK.shape[1])

    @property
    def rounds(self) -> float:
        """All rounds."""
        return float(self.rounds_X.sum())

    @cached_property
    def hits_K(self) -> Numbers:  # noqa: N802 -- names an array by its shape
        """Hits of all texts."""
        hits_K: Numbers = self.hits_XK.sum(0)
        return hits_K

    @property
    def curve(self) -> tuple[float, ...]:
        """u_1, u_2, ..."""
        return tuple((self.hits_K / self.rounds).tolist())

    @property
    def length(self) -> float:
        """Acceptance length."""
        return 1 + float(self.hits_K.sum()) / self.rounds

    @property
    def pairs_K2(self) -> Numbers:  # noqa: N802 -- names an array by its shape
        """Of each position how many rounds came to it, and how many passed."""
        came_K = np.concatenate(([self.rounds], self.hits_K[:-1]))
        return np.stack((came_K, self.hits_K), 1)

    def parted(self, other: "Counts") -> int:
        """In how many texts two measurements of the same prompts count otherwise."""
        same_X = (self.rounds_X == other.rounds_X) & (self.hits_XK == other.hits_XK).all(1)
        return int((~same_X).sum())

    def interval(self) -> Interval:
        """Acceptance length with its bootstrap interval over texts."""
        return _interval(self.length, self.resampled_lengths())

    def difference(self, healthy: "Counts", *, wider: float = 1.0) -> Interval:
        """Tokens a round above the healthy pair on the same texts; paired bootstrap.

        Args:
            healthy: the same texts.
            wider: factor on the spread, for texts other than these.
        """
        value = self.length - healthy.length
        spread = wider * few_texts(self.rounds_X)
        return _interval(value, value + spread * (self.resampled_lengths() - healthy.resampled_lengths() - value))

    def resampled_lengths(self) -> Numbers:
        """Acceptance lengths of resamples; the same seed draws the same texts."""
        texts = len(self.rounds_X)
        draws_RX = np.random.default_rng(0).multinomial(texts, np.full(texts, 1 / texts), size=RESAMPLES)
        lengths: Numbers = 1 + (draws_RX @ self.hits_XK.sum(1)) / (draws_RX @ self.rounds_X)
        return lengths


def effective(rounds_X: Numbers) -> float:
    """Texts of equal weight that would tell as much as these (Kish 1965)."""
    return float(rounds_X.sum()) ** 2 / float((rounds_X**2).sum())


def few_texts(rounds_X: Numbers) -> float:
    """By what factor a bootstrap of few texts is too narrow: its missing degree of freedom, and Student's tails.

    The quantile is Cornish and Fisher's expansion.
    """
    texts = effective(rounds_X)
    free, normal = max(texts - 1, 1.0), NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    tail = 1 + (normal**2 + 1) / (4 * free) + (5 * normal**4 + 16 * normal**2 + 3) / (96 * free**2)
    return float(tail * (texts / free) ** 0.5)


def _interval(value: float, values_R: Numbers) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values_R, [tail, 1 - tail])
    return Interval(value, min(value, float(low)), max(value, float(high)))
