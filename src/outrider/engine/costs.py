"""What a pass of n nodes costs against a pass of one, learnt from the passes themselves. Free of torch.

A drafter that may leave drafting asks it whether a draft pays: so many tokens expected against a pass that costs
so much.
"""

from bisect import bisect_left

# Widths whose cost is learnt; between them it is interpolated, beyond them extrapolated.
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# Before anything is measured: relative to one node, as packed linear layers behave on a CPU (docs/benchmarks.md).
PRIOR = (1.0, 1.02, 1.07, 1.12, 1.2, 1.3, 1.5, 1.7, 2.0, 2.4, 3.1, 3.8)
_PRIOR_WEIGHT = 0.5  # passes the prior is worth
_MOST_WEIGHT = 8.0  # passes a mean remembers: contexts grow, machines change their pace
# Each pass fades what is known of the other widths a little, so that one that was disturbed is tried again.
_FADE = 0.995


class Costs:
    """Seconds of a pass by its number of nodes.

    Args:
        learn: False keeps the prior, for runs that must repeat exactly.
    """

    def __init__(self, *, learn: bool = True) -> None:
        self._learn = learn
        self._seconds = [0.0] * len(WIDTHS)
        self._weights = [0.0] * len(WIDTHS)
        self._met: set[int] = set()
        self._table = list(PRIOR)

    def observe(self, width: int, seconds: float) -> None:
        """Learn from a pass of ``width`` nodes; only widths of the table teach, and not by their first pass."""
        if not self._learn or width not in WIDTHS:
            return
        if width not in self._met:  # kernels are built and memory is found in it: no measure of the next ones
            self._met.add(width)
            return
        index = WIDTHS.index(width)
        self._weights = [weight * _FADE for weight in self._weights]
        weight, mean = self._weights[index], self._seconds[index]
        usual = min(seconds, 2 * mean) if weight > 1 else seconds  # a disturbed pass is let in little by little
        self._seconds[index] = (weight * mean + usual) / (weight + 1)
        self._weights[index] = min(weight + 1, _MOST_WEIGHT)
        self._table = self._blend()

    def knows(self, width: int) -> bool:
        """Whether a pass of ``width`` nodes was measured, or never will be: only those of the table are."""
        return not self._learn or width not in WIDTHS or self._weights[WIDTHS.index(width)] > 0

    def of(self, width: int, rows: int = 1) -> float:
        """Cost of a pass of ``width`` nodes for each of ``rows`` sequences, in passes of one node each."""
        return self._at(width * rows) / self._at(rows)

    def _at(self, width: int) -> float:
        table = self._table
        index = min(bisect_left(WIDTHS, width), len(WIDTHS) - 1)
        if WIDTHS[index] == width:
            return table[index]
        low, high = WIDTHS[index - 1], WIDTHS[index]
        share = (width - low) / (high - low)
        return table[index - 1] + share * (table[index] - table[index - 1])

    def _blend(self) -> list[float]:
        """Means of what was measured, pulled to the prior scaled to the narrower neighbour; never falling."""
        first = next(index for index, weight in enumerate(self._weights) if weight)
        scale = self._seconds[first] / PRIOR[first]
        table: list[float] = []
        for prior, seconds, weight in zip(PRIOR, self._seconds, self._weights, strict=True):
            cost = (_PRIOR_WEIGHT * prior * scale + weight * seconds) / (_PRIOR_WEIGHT + weight)
            table.append(max(cost, table[-1]) if table else cost)
            scale = table[-1] / prior
        return table
