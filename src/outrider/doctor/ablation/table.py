"""What the ablation of a pair found: its counts healthy and with each fault. Free of torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from outrider.acceptance import Interval
from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.spread import Spread, spread_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A fault, and the counts of the pair that has it."""

    fault: Fault
    counts: Counts


@dataclass(frozen=True)
class AblationTable:
    """All of them, on the same texts.

    Attributes:
        healthy: the pair as it is.
        entries: with each fault.
        checks: measured beside them; no suspects, for they must not move anything.
    """

    healthy: Counts
    entries: tuple[Entry, ...]
    checks: tuple[Entry, ...] = ()

    @cached_property
    def positions(self) -> int:
        """Draft positions of the longest curve."""
        return max(counts.drafted for counts in self._all())

    @cached_property
    def spread(self) -> Spread:
        """How texts and rounds vary."""
        return spread_of(self._all())

    def effect(self, entry: Entry) -> Interval:
        """Tokens a round that the fault brings on these texts, negative where it costs, with its interval."""
        return entry.counts.difference(self.healthy)

    def of_texts(self, texts: Sequence[int]) -> "AblationTable":
        """Return what some of the texts say."""
        entries, checks = (
            tuple(Entry(entry.fault, entry.counts.some(texts)) for entry in some)
            for some in (self.entries, self.checks)
        )
        return AblationTable(self.healthy.some(texts), entries, checks)

    def _all(self) -> Iterable[Counts]:
        return (self.healthy, *(entry.counts for entry in self.entries))
