"""The curves of a run against what it had seen: means over stretches, and series to plot or to tabulate."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from outrider.train.report.run import Evaluation, Run, Slots, Step, mean, slot_means

RECENT = 0.1  # of the run: the stretch that counts as its end
LEAST = 3  # lines of a stretch
BINS = 40  # points of a smoothed curve
SLOTS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Series:
    """One curve.

    Attributes:
        seen: tokens or steps.
        low, high: bounds of its interval, where it has one.
    """

    name: str
    seen: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Means over lines of training."""

    loss: float | None
    accuracy: float | None
    slots: Slots
    length: float | None


def stretch(lines: Sequence[Step]) -> Stretch:
    """Return the means; None for what no line tells. Losses that are not finite are left out."""
    slots = [line.slots for line in lines if line.slots]
    return Stretch(
        loss=_mean(line.loss for line in lines),
        accuracy=_mean(line.accuracy for line in lines),
        slots=slot_means(slots) if slots else (),
        length=_mean(line.length for line in lines),
    )


def recent(run: Run) -> tuple[Step, ...]:
    """Return the last lines of training, a tenth of the run or three of them."""
    last = tuple(line for line in run.steps if run.seen(line) >= (1 - RECENT) * run.end)
    return last if len(last) >= LEAST else run.steps[-LEAST:]


def before(run: Run, seen: float) -> tuple[Step, ...]:
    """Return the lines of training that lead up to a point, a twentieth of what was seen until then."""
    until = [line for line in run.steps if run.seen(line) <= seen]
    near = tuple(line for line in until if run.seen(line) >= (1 - RECENT / 2) * seen)
    return near if len(near) >= LEAST else tuple(until[-LEAST:])


def all_series(run: Run) -> dict[str, list[Series]]:
    """Return the curves that a run has, by what their values are."""
    trained, measured = run.steps, run.evaluations
    loss = [
        _smoothed(run, "training", trained, lambda line: line.loss),
        _plain(run, "held out", measured, lambda line: line.loss),
    ]
    accuracy = [_smoothed(run, "training, all slots", trained, lambda line: line.accuracy)]
    accuracy += [_smoothed(run, f"training, slot {k + 1}", trained, _slot(k)) for k in range(SLOTS_SHOWN)]
    rates = [_plain(run, f"u_{k + 1}", measured, _rate(k)) for k in range(SLOTS_SHOWN)]
    return {
        name: kept
        for name, series in {
            "loss": loss,
            "slot accuracy": accuracy,
            "acceptance length": [_tau(run), *_foreseen(run)],
            "position rates": rates,
        }.items()
        if (kept := [each for each in series if each.values])
    }


def _foreseen(run: Run) -> list[Series]:
    """Accepted lengths that were counted on given texts, not by decoding."""
    return [
        _smoothed(run, "on training texts", run.steps, lambda line: line.length),
        _plain(run, "on held-out texts", run.evaluations, lambda line: line.length),
    ]


def _tau(run: Run) -> Series:
    lines = run.decoded
    whole = all(line.low is not None and line.high is not None for line in lines)
    return Series(
        "decoded",
        tuple(map(run.seen, lines)),
        tuple(line.tau for line in lines if line.tau is not None),
        tuple(line.low for line in lines if line.low is not None) if whole else (),
        tuple(line.high for line in lines if line.high is not None) if whole else (),
    )


def _slot(k: int) -> Callable[[Step], float | None]:
    return lambda line: line.slots[k] if k < len(line.slots) else None


def _rate(k: int) -> Callable[[Evaluation], float | None]:
    return lambda line: line.rates[k] if k < len(line.rates) else None


def _plain(run: Run, name: str, lines: Sequence[Evaluation], value: Callable[[Evaluation], float | None]) -> Series:
    points = [(run.seen(line), found) for line in lines if (found := value(line)) is not None and math.isfinite(found)]
    return Series(name, tuple(x for x, _ in points), tuple(y for _, y in points))


def _smoothed(run: Run, name: str, lines: Sequence[Step], value: Callable[[Step], float | None]) -> Series:
    """Return means over stretches of equal length."""
    points = [(run.seen(line), found) for line in lines if (found := value(line)) is not None and math.isfinite(found)]
    if len(points) <= BINS:
        return Series(name, tuple(x for x, _ in points), tuple(y for _, y in points))
    bounds = [index * len(points) // BINS for index in range(BINS + 1)]
    parts = [points[start:stop] for start, stop in pairwise(bounds)]
    return Series(
        name,
        tuple(mean([x for x, _ in part]) for part in parts),
        tuple(mean([y for _, y in part]) for part in parts),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None and math.isfinite(value)]
    return mean(found) if found else None
