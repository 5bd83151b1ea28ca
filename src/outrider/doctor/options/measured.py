"""What the evidence itself measured under other conditions: nothing is better known than that."""

from collections.abc import Iterator
from dataclasses import dataclass

from outrider.doctor.observation import Observation
from outrider.doctor.observation.reading import Reading, read


@dataclass(frozen=True, slots=True)
class Other:
    """A measurement under one other condition."""

    key: str
    value: object
    reading: Reading


def others(o: Observation) -> Iterator[Other]:
    """Yield the measurements in which one thing differed."""
    for one in o.evidence.series:
        if len(one.when) == 1:
            (key, value), *_ = one.when.items()
            drafted = value if key == "num_speculative_tokens" and isinstance(value, int) else None
            yield Other(key, value, read(one.counters, drafted))


def of(o: Observation, key: str, value: object = None) -> Reading | None:
    """Return the measurement with this one thing different, by name if a value is given."""
    wanted = None if value is None else str(value).lower()
    return next((one.reading for one in others(o) if one.key == key and wanted in (None, str(one.value).lower())), None)


def point(value: float | None) -> tuple[float, float] | None:
    """Return a measured number as an interval of its own."""
    return None if value is None else (value, value)
