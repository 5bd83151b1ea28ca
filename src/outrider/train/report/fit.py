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
EXPONENTS = np.geomspace(0.02, 3.0, 24)  # tried first; then between the neighbours of the best
THIRDS = 16  # times that the stretch between them is cut
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
    """Fit each row of ``y``; scales are at least 0, ends at most the ceiling."""

    def error(exponents: Numbers) -> Numbers:
        return np.asarray(((y - _at(x, y, exponents, ceiling).fitted) ** 2).sum(1))

    errors = np.stack([error(np.full(len(y), exponent)) for exponent in EXPONENTS])
    best = errors.argmin(0)
    low, high = np.log(EXPONENTS[np.maximum(best - 1, 0)]), np.log(EXPONENTS[np.minimum(best + 1, len(EXPONENTS) - 1)])
    for _ in range(THIRDS):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        left = error(np.exp(first)) <= error(np.exp(second))
        low, high = np.where(left, low, first), np.where(left, second, high)
    return _at(x, y, np.exp((low + high) / 2), ceiling)


def _at(x: Numbers, y: Numbers, exponents: Numbers, ceiling: float) -> _Curves:
    """Return end and scale of y = end - scale * x^-c by least squares, for one exponent a row."""
    t = x[None] ** -exponents[:, None]
    mean = t.mean(1)
    centred = t - mean[:, None]
    scale = np.maximum(-(y * centred).sum(1) / (centred**2).sum(1), 0.0)
    end = y.mean(1) + scale * mean
    if np.isfinite(ceiling):
        bound = np.maximum(((ceiling - y) * t).sum(1) / (t**2).sum(1), 0.0)
        end, scale = np.where(end > ceiling, ceiling, end), np.where(end > ceiling, bound, scale)
    return _Curves(end, scale, exponents, end[:, None] - scale[:, None] * t)
