"""From the rows of a trace to what they say: acceptance, and by depth how well drafter and target foresaw it.

Counts are kept and divided last. Words are those of ``docs/glossary.md``, columns those of ``docs/trace.md``.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import NonNegativeInt, PositiveInt

from outrider.acceptance import Acceptance, Round
from outrider.results import Record
from outrider.traces.format import TraceRow


class DepthSummary(Record):
    """The nodes of one depth.

    Attributes:
        offered: nodes proposed.
        reached: those whose parent was accepted: the target's word decided about them.
        accepted: those on an accepted path.
        drafter: mean of the drafter's estimates that they are accepted, over all offered.
        frequency: accepted / offered: what these estimates should be.
        target: mean of the target's probabilities after the parent, over those reached.
        conditional: accepted / reached: at temperature 1 what these probabilities should be.
    """

    depth: PositiveInt
    offered: NonNegativeInt
    reached: NonNegativeInt
    accepted: NonNegativeInt
    drafter: float | None
    frequency: float
    target: float | None
    conditional: float | None


class DrafterSummary(Record):
    """All rounds of one drafter.

    Attributes:
        left_spine: of the rounds that accepted anything, the share whose path left the spine: the line from the
            root through each node's first child.
    """

    drafter: str
    prompts: NonNegativeInt
    rounds: NonNegativeInt
    drafted: NonNegativeInt
    accepted: NonNegativeInt
    acceptance_length: float | None
    acceptance_rate: float | None
    position_rates: list[float]
    depths: list[DepthSummary]
    left_spine: float | None
    seconds: float


def summarise(rows: Iterable[TraceRow]) -> list[DrafterSummary]:
    """Return one summary a drafter, in the order in which they first appear."""
    tallies: dict[str, _Tally] = {}
    for row in rows:
        tallies.setdefault(row.drafter, _Tally()).add(row)
    return [tally.summary(drafter) for drafter, tally in tallies.items()]


class _Mean:
    """A mean over the values that are known."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self._sum += value
            self._count += 1

    @property
    def value(self) -> float | None:
        return self._sum / self._count if self._count else None


class _Depth:
    """Counts of one depth."""

    def __init__(self) -> None:
        self.offered = self.reached = self.accepted = 0
        self.drafter, self.target = _Mean(), _Mean()

    def summary(self, depth: int) -> DepthSummary:
        return DepthSummary(
            depth=depth,
            offered=self.offered,
            reached=self.reached,
            accepted=self.accepted,
            drafter=self.drafter.value,
            frequency=self.accepted / self.offered,
            target=self.target.value,
            conditional=self.accepted / self.reached if self.reached else None,
        )


@dataclass(slots=True)
class _Paths:
    """Accepted paths, and how many of them left the spine."""

    taken: int = 0
    strayed: int = 0


class _Tally:
    """Counts of one drafter."""

    def __init__(self) -> None:
        self._rounds: defaultdict[int, list[Round]] = defaultdict(list)
        self._depths: defaultdict[int, _Depth] = defaultdict(_Depth)
        self._paths = _Paths()
        self._seconds = 0.0

    def add(self, row: TraceRow) -> None:
        self._rounds[row.prompt].append(row.counts)
        self._seconds += row.seconds
        self._add_nodes(row)
        if row.path:
            self._paths.taken += 1
            self._paths.strayed += not spine(row).issuperset(row.path)

    def _add_nodes(self, row: TraceRow) -> None:
        walked = {0, *row.path}
        estimates = row.reach or (None,) * len(row.tokens)
        depths = row.depths
        for node, (parent, estimate, target) in enumerate(
            zip(row.parents, estimates, row.target, strict=True), start=1
        ):
            counts = self._depths[depths[node]]
            counts.offered += 1
            counts.accepted += node in walked
            counts.drafter.add(estimate)
            if parent in walked:
                counts.reached += 1
                counts.target.add(target)

    def summary(self, drafter: str) -> DrafterSummary:
        acceptance = Acceptance.from_sequences(self._rounds.values())
        return DrafterSummary(
            drafter=drafter,
            prompts=len(self._rounds),
            rounds=acceptance.num_rounds,
            drafted=acceptance.num_drafted,
            accepted=acceptance.num_accepted,
            acceptance_length=acceptance.length,
            acceptance_rate=acceptance.rate,
            position_rates=list(acceptance.position_rates),
            depths=[self._depths[depth].summary(depth) for depth in sorted(self._depths)],
            left_spine=self._paths.strayed / self._paths.taken if self._paths.taken else None,
            seconds=self._seconds,
        )


def spine(row: TraceRow) -> set[int]:
    """Return the nodes from the root through each one's first child: drafters list the likeliest first."""
    nodes, tip = set(), 0
    for node, parent in enumerate(row.parents, start=1):
        if parent == tip:
            nodes.add(node)
            tip = node
    return nodes
