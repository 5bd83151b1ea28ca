"""What a drafted round costs against a plain one, learnt from the rounds themselves. Free of torch.

A drafter that may leave drafting asks it whether a draft pays: so many tokens expected against a round that costs
so much. Rounds with and without drafts are kept apart: in the former there may be a pass of the drafter's own.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

# Widths that drafters compare (drafters/budget.py). All that are run are learnt; others are interpolated.
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# Before anything is measured: relative to one node, as packed linear layers behave on a CPU (docs/benchmarks.md).
PRIOR = (1.0, 1.02, 1.07, 1.12, 1.2, 1.3, 1.5, 1.7, 2.0, 2.4, 3.1, 3.8)
_PRIOR_WEIGHT = 0.5  # passes the prior is worth
_MOST_WEIGHT = 8.0  # passes a mean remembers: contexts grow, machines change their pace
# Each pass fades what is known of the other widths a little, so that one that was disturbed is tried again.
_FADE = 0.995
_FORGOTTEN = 0.1  # passes: what is known less well than that is not known
_MOST_KEPT = 64  # widths; of those beyond, the ones not seen for longest are forgotten

Curve = Callable[[int], float]


@lru_cache(maxsize=4096)
def _prior(nodes: int) -> float:
    """Between the widths of the table interpolated, beyond them extrapolated."""
    index = max(1, min(bisect_left(WIDTHS, nodes), len(WIDTHS) - 1))
    low, high = WIDTHS[index - 1], WIDTHS[index]
    share = (nodes - low) / (high - low)
    return PRIOR[index - 1] + share * (PRIOR[index] - PRIOR[index - 1])


@dataclass(slots=True)
class _Seen:
    """Mean seconds of the passes of one width, and how many passes they are worth."""

    mean: float = 0.0
    weight: float = 0.0


class _Passes:
    """Seconds of passes of one kind by their number of nodes."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}  # those seen last come last
        self._nodes: list[int] = []
        self._seconds: list[float] = []
        self._scales: list[float] = []  # of the usual cost there

    def __len__(self) -> int:
        return len(self._seen)

    def weight(self, nodes: int) -> float:
        """How many passes of so many nodes are remembered."""
        return self._seen[nodes].weight if nodes in self._seen else 0.0

    def unit(self) -> float | None:
        """Seconds of a pass that costs 1 by the prior, as the best known width has it."""
        nodes, seen = max(self._seen.items(), key=_by_weight, default=(1, _Seen()))
        return seen.mean / _prior(nodes) if seen.weight else None

    def learn(self, nodes: int, seconds: float, expected: float | None) -> None:
        """Add a pass; how long it was expected to take is None where nothing was measured yet."""
        seen = self._seen.pop(nodes, None)
        if seen is None:
            # Kernels are built and memory is found in the first pass of a width: no measure of the next ones.
            self._seen[nodes] = _Seen()
            if len(self._seen) > _MOST_KEPT:
                del self._seen[next(iter(self._seen))]
            return
        self._seen[nodes] = seen
        if expected is not None:  # a disturbed pass is let in little by little
            seconds = min(seconds, max(expected, seen.mean) * (2 if seen.weight > 1 else 4))
        seen.mean = (seen.weight * seen.mean + seconds) / (seen.weight + 1)
        seen.weight = min(seen.weight + 1, _MOST_WEIGHT)

    def fade(self) -> None:
        """Count every width for a little less."""
        for seen in self._seen.values():
            seen.weight *= _FADE

    def fade_one(self, nodes: int) -> None:
        """Count one width for a little less."""
        if nodes in self._seen:
            self._seen[nodes].weight *= _FADE

    def settle(self, usual: Curve) -> None:
        """Make a curve of what was measured, beginning with what is known best.

        Each width is pulled to what the curve says so far, and is never dearer than a wider one: where two disagree,
        the one that is known better is believed.
        """
        self._nodes, self._seconds, self._scales = [], [], []
        for nodes, seen in sorted(self._seen.items(), key=_by_weight, reverse=True):
            if not seen.weight:
                break
            here, index = usual(nodes), bisect_left(self._nodes, nodes)
            so_far = self._so_far(index, here)
            cost = (_PRIOR_WEIGHT * so_far + seen.weight * seen.mean) / (_PRIOR_WEIGHT + seen.weight)
            if index:
                cost = max(cost, self._seconds[index - 1])
            if index < len(self._nodes):
                cost = min(cost, self._seconds[index])
            self._nodes.insert(index, nodes)
            self._seconds.insert(index, cost)
            self._scales.insert(index, cost / here)

    def at(self, nodes: int, usual: Curve) -> float:
        """Cost of any width, measured or not."""
        index = bisect_left(self._nodes, nodes)
        if index < len(self._nodes) and self._nodes[index] == nodes:
            return self._seconds[index]
        return self._so_far(index, usual(nodes))

    def _so_far(self, index: int, usual: float) -> float:
        """What the curve says before its point ``index``: the usual cost, scaled as at the last, no more than there."""
        if index:
            usual = max(usual * self._scales[index - 1], self._seconds[index - 1])
        return min(usual, self._seconds[index]) if index < len(self._nodes) else usual


def _by_weight(item: tuple[int, _Seen]) -> float:
    return item[1].weight


class Costs:
    """Seconds of plain rounds by their rows and of drafted ones by their nodes.

    Args:
        learn: False keeps the prior, for runs that must repeat exactly.
    """

    def __init__(self, *, learn: bool = True) -> None:
        self._learn = learn
        self._plain, self._drafted = _Passes(), _Passes()
        self._unit: float | None = None

    def observe(self, width: int, seconds: float, *, rows: int = 1) -> None:
        """Learn from a round; the first of a width teaches nothing.

        Args:
            width: nodes a row: 1 in a plain round, in which no drafter had a pass of its own.
            seconds: that it took, drafting included.
            rows: of the batch, idle ones between others included.
        """
        if not self._learn:
            return
        nodes, drafted = width * rows, width > 1
        passes, at = (self._drafted, self._drafted_at) if drafted else (self._plain, self._plain_at)
        expected = None if self._unit is None else at(nodes)
        self._drafted.fade()
        if drafted:  # till knows() asks for a plain one, in case the last was disturbed or long ago
            self._plain.fade_one(rows)
        passes.learn(nodes, seconds, expected)
        self._settle()

    def knows(self, rows: int) -> bool:
        """Whether a plain round of so many rows was measured, and not too long ago."""
        return not self._learn or self._plain.weight(rows) > _FORGOTTEN

    def of(self, width: int, rows: int = 1) -> float:
        """Cost of a round of ``width`` nodes for each of ``rows`` sequences, in plain rounds."""
        return 1.0 if width == 1 else max(1.0, self._drafted_at(width * rows) / self._plain_at(rows))

    def _settle(self) -> None:
        self._unit = self._plain.unit() or self._drafted.unit()
        self._plain.settle(self._usual)
        self._drafted.settle(self._plain_at)

    def _usual(self, nodes: int) -> float:
        return (self._unit or 1.0) * _prior(nodes)

    def _plain_at(self, rows: int) -> float:
        return self._plain.at(rows, self._usual)

    def _drafted_at(self, nodes: int) -> float:
        """Where nothing is known of drafted rounds, they cost what a plain one of as many rows does."""
        return self._drafted.at(nodes, self._plain_at)
