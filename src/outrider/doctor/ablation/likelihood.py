"""How likely counts are under each of many hypotheses. Free of torch.

Counts of a position are beta-binomial: what the table does not know well widens what it foresees. The texts observed
may as a whole be easier or harder than the table's, which shifts all log-odds alike: that shift is integrated out.
Shape letters: H hypotheses, K draft positions, Q points of the integral.
"""

from collections.abc import Sequence

import numpy as np

from outrider.doctor.ablation.counts import Numbers
from outrider.doctor.ablation.hypothesis import Hypothesis

POINTS = 9
OTHER_LENGTH = -7.0  # log-probability that an engine reports another number of positions than it drafts
ASYMPTOTIC = 8  # from where Stirling's series is exact to ten places


def log_likelihoods(
    hypotheses: Sequence[Hypothesis], seen_K2: Numbers, drafted: int | None, difficulty: float
) -> Numbers:
    """Log-probability of the observed order of hits and misses, [H].

    Args:
        hypotheses: which.
        seen_K2: rounds that came to each position and passed it.
        drafted: positions that the engine reports; None where that is not known.
        difficulty: standard deviation of the common shift of log-odds.
    """
    alpha_HK, beta_HK = (np.stack(part) for part in zip(*((h.alpha_K, h.beta_K) for h in hypotheses), strict=True))
    nodes_Q, weights_Q = np.polynomial.hermite_e.hermegauss(POINTS)
    known_HK = alpha_HK + beta_HK
    odds_QHK = np.log(alpha_HK / beta_HK) + difficulty * nodes_Q[:, None, None]
    alpha_QHK = (known_HK / (1 + np.exp(-odds_QHK))).clip(1e-6)
    beta_QHK = (known_HK - alpha_QHK).clip(1e-6)
    hits_K, misses_K = seen_K2[:, 1], seen_K2[:, 0] - seen_K2[:, 1]
    logs_QH = (_log_beta(alpha_QHK + hits_K, beta_QHK + misses_K) - _log_beta(alpha_QHK, beta_QHK)).sum(-1)
    most_H = logs_QH.max(0)
    mixed_H: Numbers = most_H + np.log(weights_Q @ np.exp(logs_QH - most_H) / weights_Q.sum())
    mixed_H += [_length(hypothesis.drafted, drafted) for hypothesis in hypotheses]
    return mixed_H


def _length(expected: int | None, reported: int | None) -> float:
    return 0.0 if None in (expected, reported) or expected == reported else OTHER_LENGTH


def _log_beta(a: Numbers, b: Numbers) -> Numbers:
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


def _log_gamma(x: Numbers) -> Numbers:
    """Stirling's series, after the recurrence has brought small arguments to where it holds."""
    shifted, product = x + ASYMPTOTIC, np.ones_like(x)
    for step in range(ASYMPTOTIC):
        product *= x + step
    inverse = 1 / shifted
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 * (1 / 1260 - inverse**2 / 1680)))
    log_gamma: Numbers = (shifted - 0.5) * np.log(shifted) - shifted + 0.5 * np.log(2 * np.pi) + series
    return log_gamma - np.log(product)
