"""What several rules ask of readings and contrasts."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Callable, Iterator
from math import log

from outrider.doctor.observation import Observation
from outrider.doctor.observation.contrast import Contrast
from outrider.doctor.rules.signal import Signal

MATERIAL = 1.35
"""Ratio from which a move counts: prompt to prompt, acceptance differs by tens of per cent."""
STEADY = 1.12


def moved(o: Observation, dimension: str, weight: float, says: str) -> Iterator[Signal]:
    """Acceptance moved with a condition, or did not; a contrast in which more differs says less."""
    known = [(c, ratio) for c in o.at(dimension) if (ratio := c.accepted) is not None and _alone(c, dimension)]
    if not known:
        return
    contrast, ratio = max(known, key=lambda pair: abs(log(pair[1])) / len(pair[0].dimensions))
    size = abs(log(ratio))
    if size >= log(MATERIAL):
        share = min(1.0, size / log(2)) / len(contrast.dimensions)
        yield Signal(f"{says}: {_told(contrast, ratio)}", weight * share, "contrast")
    elif size <= log(STEADY):
        yield Signal(f"acceptance does not move with {contrast.told}", -1.2, "contrast")


def falls_with(o: Observation, dimension: str, key: str, weight: float, says: str) -> Iterator[Signal]:
    """Acceptance falls as a number grows."""
    for contrast in o.at(dimension):
        values, ratio = contrast.number(key), contrast.accepted
        if values is None or ratio is None or values[0] == values[1]:
            continue
        slope = ratio if values[1] > values[0] else 1 / ratio
        if slope < 1 / MATERIAL:
            share = min(1.0, -log(slope) / log(2)) / len(contrast.dimensions)
            yield Signal(f"{says}: {_told(contrast, ratio)}", weight * share, "contrast")
            return
        if slope > 1 / STEADY:
            yield Signal(f"acceptance does not fall with {contrast.told}", -1.0, "contrast")
            return


def better_elsewhere(o: Observation, dimension: str) -> Contrast | None:
    """A contrast in which the other condition keeps far more."""
    found = [c for c in o.at(dimension) if (c.accepted or 1) > MATERIAL or (c.speed or 1) > MATERIAL]
    return max(found, key=lambda c: max(c.accepted or 0, c.speed or 0), default=None)


def of(contrast: Contrast, key: str, test: Callable[[object], bool]) -> bool:
    """Some condition of the contrast satisfies a test."""
    return any(key in name.lower() and test(value) for name, value in contrast.after.items())


def _alone(contrast: Contrast, dimension: str) -> bool:
    """A change of engine, method or target hides what a finer dimension does."""
    coarse = {"engine", "method", "target", "drafter", "workload"} - {dimension}
    if dimension == "precision":
        coarse -= {"target", "drafter"}
    return not coarse & contrast.dimensions


def _told(contrast: Contrast, ratio: float) -> str:
    return f"{ratio:.2g} times the acceptance at {contrast.told}"


def failure(o: Observation) -> bool:
    """It stops with an error instead of drafting badly."""
    return o.evidence.error is not None and not o.reading.measured


def healthy_acceptance(o: Observation) -> bool:
    """Acceptance is known and is what one may expect."""
    if o.share is not None:
        return o.share > 0.93
    reading = o.reading
    first = reading.first
    if first is not None:
        return first > 0.6
    if reading.tau is not None and o.facts.drafted:
        return (reading.tau - 1) / o.facts.drafted > 0.5 or reading.tau > 3
    return (reading.rate or 0) > 0.5 or (reading.tau or 0) > 3
