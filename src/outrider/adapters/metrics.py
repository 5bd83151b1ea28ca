"""``/metrics`` in Prometheus' text form. A line that is broken costs that line: half an answer is still read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one look.

    Attributes:
        samples: those that are numbers.
        broken: lines that could not be read.
    """

    samples: tuple[Sample, ...]
    broken: int = 0

    def total(self, name: str) -> float | None:
        """Sum over labels (engines of a data-parallel server); None where there is none."""
        values = [sample.value for sample in self.samples if sample.name == name]
        return sum(values) if values else None

    def largest(self, name: str) -> float | None:
        """Largest over labels."""
        return max((sample.value for sample in self.samples if sample.name == name), default=None)

    def mean(self, name: str) -> float | None:
        """Mean over labels."""
        values = [sample.value for sample in self.samples if sample.name == name]
        return sum(values) / len(values) if values else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Sums by one label's values."""
        found: dict[str, float] = {}
        for sample in self.samples:
            if sample.name == name and label in sample.labels:
                found[sample.labels[label]] = found.get(sample.labels[label], 0.0) + sample.value
        return found

    def label(self, name: str, label: str) -> str | None:
        """Value of a label at the first sample that has it."""
        return next((s.labels[label] for s in self.samples if s.name == name and label in s.labels), None)

    def has(self, prefix: str) -> bool:
        """Say whether a name starts so."""
        return any(sample.name.startswith(prefix) for sample in self.samples)


def read_metrics(text: str, wanted: Callable[[str], bool] = lambda _name: True) -> Samples:
    """Read samples whose line passes ``wanted``; histogram buckets and creation times are left out."""
    samples: list[Sample] = []
    broken = 0
    for line in _lines(text):
        if not wanted(line):
            continue
        try:
            found = [sample for family in text_string_to_metric_families(line + "\n") for sample in family.samples]
        except (ValueError, IndexError, KeyError):
            broken += 1
            continue
        samples += [sample for sample in found if isfinite(sample.value)]
    return Samples(tuple(samples), broken)


def positions(found: dict[str, float]) -> tuple[float, ...]:
    """Values by position in the order of positions; those after a gap are left out."""
    values: list[float] = []
    while str(len(values)) in found:
        values.append(found[str(len(values))])
    return tuple(values)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        name = line.split("{", 1)[0].split(" ", 1)[0]
        if line.strip() and not line.startswith("#") and not name.endswith(("_bucket", "_created")):
            yield line.strip()
