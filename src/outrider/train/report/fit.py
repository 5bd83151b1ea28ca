"""Where a curve is heading: y(n) = end - b * n^-c, fitted to measurements, with what another doubling should add.

For a given exponent the rest is a straight line; so exponents are tried one by one. Intervals are those of a
parametric bootstrap, with the noise that is left over or is known. What the fit cannot know: a schedule that ends bends
the curve, and going on needs a longer one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.acceptance import Interval

Numbers = NDArray[np.float64]
EXPONENTS = np.geomspace(0.02, 3.0, 240)
LEAST = 5  # points: three are fitted, and what is left over tells the noise
FIRST = 0.05  # of all that was seen: the law holds for what comes after the start
DRAWS = 400
OUTSIDE = (2.5, 97.5)  # per cent


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted curve.

    Attributes:
        end: what it goes to.
        doubling: what it should gain by as much again as was seen; for a loss, lose.
        exponent: c.
        scale: b, for n counted in all that was seen.
        seen: what was seen in all.
        points: that were fitted.
        rising: whether more is better.
    """

    end: Interval
    doubling: Interval
    exponent: float
    scale: float
    seen: float
    points: int
    rising: bool

    def at(self, seen: float) -> float:
        """Return the fitted value after so much."""
        change = float(self.scale * (seen / self.seen) ** -self.exponent)
        return self.end.value - change if self.rising else self.end.value + change


@dataclass(frozen=True, slots=True)
class _Curves:
    """Many fitted curves: end, scale and exponent of each, and its fitted values [m, n]."""

    end: Numbers
    scale: Numbers
    exponent: Numbers
    fitted: Numbers


def fit(
    seen: Sequence[float],
    values: Sequence[float],
    *,
    rising: bool = True,
    limit: float | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> Fit | None:
    """Fit a curve that saturates; None where there are too few points for one.

    Args:
        seen: tokens or steps, ascending.
        values: measured there.
        rising: whether it rises to its end; a loss falls.
        limit: that no end can pass: a block's length, or 0 for a loss.
        noise: standard deviation of a measurement, where it is known to be at least so large.
        seed: of the bootstrap.
    """
    x, y = np.asarray(seen, float), np.asarray(values, float) * (1 if rising else -1)
    whole = x[-1] if len(x) else 0.0
    late = (x >= FIRST * whole) & (x > 0)
    x, y = x[late] / (whole or 1.0), y[late]
    if len(x) < LEAST:
        return None
    ceiling = np.inf if limit is None else limit if rising else -limit
    best = _solve(x, y[None], ceiling)
    left = float((y - best.fitted[0]).std()) * (len(x) / (len(x) - 3)) ** 0.5
    drawn = np.random.default_rng(seed).normal(0.0, max(left, noise), (DRAWS, len(x)))
    draws = _solve(x, best.fitted + drawn, ceiling)
    sign = 1 if rising else -1
    return Fit(
        end=_interval(sign * best.end, sign * draws.end),
        doubling=_interval(_gain(best), _gain(draws)),
        exponent=float(best.exponent[0]),
        scale=float(best.scale[0]),
        seen=float(whole),
        points=len(x),
        rising=rising,
    )


def foretold(seen: Sequence[float], values: Sequence[float], **settings: Any) -> Interval | None:
    """Return what a fit to the first half would have said of the end; None where it has too few points.

    Args:
        seen: as for ``fit``.
        values: likewise.
        settings: likewise.
    """
    half = [(x, y) for x, y in zip(seen, values, strict=True) if x <= seen[-1] / 2]
    early = fit([x for x, _ in half], [y for _, y in half], **settings) if half else None
    if early is None:
        return None
    # From the half's own end to the whole's is a doubling but for what lies between two measurements.
    now, sign = early.at(early.seen), 1 if early.rising else -1
    ends = [now + sign * gain for gain in (early.doubling.low, early.doubling.value, early.doubling.high)]
    return Interval(ends[1], min(ends), max(ends))


def _gain(curves: _Curves) -> Numbers:
    return np.asarray(curves.scale * (1 - 2**-curves.exponent))


def _interval(value: Numbers, draws: Numbers) -> Interval:
    low, high = np.percentile(draws, OUTSIDE)
    return Interval(float(value[0]), float(min(low, value[0])), float(max(high, value[0])))


def _solve(x: Numbers, y: Numbers, ceiling: float) -> _Curves:
    """Fit each row of ``y`` with every exponent and keep the best; scales are at least 0, ends at most the ceiling."""
    best = _Curves(np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y)), np.zeros_like(y))
    least = np.full(len(y), np.inf)
    for exponent in EXPONENTS:
        t = x**-exponent
        end, scale = _line(t, y, ceiling)
        fitted = end[:, None] - scale[:, None] * t
        error = ((y - fitted) ** 2).sum(1)
        better = error < least
        least[better] = error[better]
        best.end[better], best.scale[better], best.exponent[better] = end[better], scale[better], exponent
        best.fitted[better] = fitted[better]
    return best


def _line(t: Numbers, y: Numbers, ceiling: float) -> tuple[Numbers, Numbers]:
    """Return end and scale of y = end - scale * t by least squares, within their bounds."""
    centred = t - t.mean()
    scale = np.maximum(-(y @ centred) / (centred @ centred), 0.0)
    end = y.mean(1) + scale * t.mean()
    over = end > ceiling
    end = np.where(over, ceiling, end)
    bound = np.maximum(((end[:, None] - y) @ t) / (t @ t), 0.0) if np.isfinite(ceiling) else scale
    return end, np.where(over, bound, scale)
