"""How texts differ: some are easy at every position, some hard; beside that rounds are nearly independent. No torch.

A text shifts the log-odds of all conditional rates alike (a random effect of the text). On real texts this accounts for
nearly all that texts vary more than chance would have it.
Shape letters: X texts, K draft positions.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from outrider.doctor.ablation.counts import Counts, Numbers

STEPS, FARTHEST = 30, 4.0  # of the search for a text's shift
INFORMED = 3.0  # variance of hits, summed over positions, from which a text says something of its shift


@dataclass(frozen=True, slots=True)
class Spread:
    """What makes two measurements of the same pair differ.

    Attributes:
        text: standard deviation of a text's log-odds.
        rounds: by what factor rounds of one text vary more than independent ones; at least 1.
    """

    text: float
    rounds: float


def spread_of(measured: Iterable[Counts]) -> Spread:
    """Estimate both from all measurements together: shifts by moments, their middle taken."""
    fits = [_fit(counts) for counts in measured]
    texts = [text for text, _, _ in fits if text is not None]
    degrees = sum(free for _, _, free in fits)
    squares = sum(square for _, square, _ in fits)
    return Spread(float(np.median(texts)) if texts else 0.0, max(1.0, squares / degrees) if degrees else 1.0)


def _fit(counts: Counts) -> tuple[float | None, float, int]:
    """Spread of the texts' shifts, Pearson's statistic of what is left, and its degrees of freedom."""
    came_XK = np.concatenate((counts.rounds_X[:, None], counts.hits_XK[:, :-1]), 1)
    shifts_X, odds_K, information_X = _shifts(came_XK, counts.hits_XK)
    informed_X = information_X >= INFORMED
    if informed_X.sum() < 3:  # noqa: PLR2004 -- two texts have no spread worth the name
        return None, 0.0, 0
    variance = float(shifts_X[informed_X].var(ddof=1)) - float(np.median(1 / information_X[informed_X]))
    rates_XK = _rates(odds_K + shifts_X[:, None])
    variances_XK = came_XK * rates_XK * (1 - rates_XK)
    usable_XK = (variances_XK >= 1) & informed_X[:, None]
    squares_XK = (counts.hits_XK - came_XK * rates_XK) ** 2 / np.where(usable_XK, variances_XK, 1)
    free = int(usable_XK.sum()) - int(informed_X.sum()) - int(usable_XK.any(0).sum()) + 1
    return max(0.0, variance) ** 0.5, float(squares_XK[usable_XK].sum()) if free > 0 else 0.0, max(0, free)


def _shifts(came_XK: Numbers, hits_XK: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Fit shifts of texts and log-odds of positions in turn (Newton); the information about each shift comes last."""
    shifts_X, odds_K = np.zeros(came_XK.shape[0]), np.zeros(came_XK.shape[1])
    information_XK = np.ones_like(came_XK)
    for step in range(2 * STEPS):
        rates_XK = _rates(odds_K + shifts_X[:, None])
        information_XK = came_XK * rates_XK * (1 - rates_XK)
        axis = step % 2  # positions first: most of what there is to explain lies there
        missing = (hits_XK - came_XK * rates_XK).sum(axis)
        change = (missing / np.maximum(information_XK.sum(axis), 1e-9)).clip(-1, 1)
        if axis:
            shifts_X = (shifts_X + change).clip(-FARTHEST, FARTHEST)
            shifts_X -= np.average(shifts_X, weights=information_XK.sum(1) + 1e-9)
        else:
            odds_K = (odds_K + change).clip(-2 * FARTHEST, 2 * FARTHEST)
    return shifts_X, odds_K, information_XK.sum(1)


def _rates(odds: Numbers) -> Numbers:
    rates: Numbers = 1 / (1 + np.exp(-odds))
    return rates
