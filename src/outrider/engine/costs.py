"""What a pass of n nodes costs against a pass of one, learnt from the passes themselves. Free of torch.

A drafter that may leave drafting asks it whether a draft pays: E tokens expected against a pass that costs C.
"""

from bisect import bisect_left

# Widths whose cost is learnt; between them it is interpolated, beyond them extrapolated.
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
# Before anything is measured: seconds relative to one node, as packed linear layers behave (docs/benchmarks.md).
PRIOR = (1.0, 1.02, 1.08, 1.22, 1.6, 2.3, 3.7)
_MEMORY = 0.85  # of the old mean, per observation: contexts grow, machines change their pace


class Costs:
    """Relative seconds of a pass by its number of nodes."""

    def __init__(self, *, learn: bool = True) -> None:
        self._learn = learn
        self._seconds: list[float | None] = [None] * len(WIDTHS)

    def observe(self, width: int, seconds: float) -> None:
        """Learn from a pass of ``width`` nodes; only widths of the table teach."""
        if not self._learn or width not in WIDTHS:
            return
        index = WIDTHS.index(width)
        old = self._seconds[index]
        # A pass that took far longer than usual was disturbed, and is let in only little by little.
        self._seconds[index] = seconds if old is None else _MEMORY * old + (1 - _MEMORY) * min(seconds, 2 * old)

    def of(self, width: int, rows: int = 1) -> float:
        """Cost of a pass of ``width`` nodes for each of ``rows`` sequences, in passes of one node each."""
        return self._at(width * rows) / self._at(rows)

    def _at(self, width: int) -> float:
        table = self._table()
        index = min(bisect_left(WIDTHS, width), len(WIDTHS) - 1)
        if WIDTHS[index] == width:
            return table[index]
        low, high = WIDTHS[index - 1], WIDTHS[index]
        share = (width - low) / (high - low)
        return table[index - 1] + share * (table[index] - table[index - 1])

    def _table(self) -> list[float]:
        """Measured costs where there are any, the prior scaled to the nearest narrower measurement elsewhere."""
        base = self._seconds[0]
        if base is None:
            return list(PRIOR)
        scale = 1.0
        table: list[float] = []
        for prior, seconds in zip(PRIOR, self._seconds, strict=True):
            cost = prior * scale if seconds is None else seconds / base
            scale = cost / prior
            table.append(max(cost, table[-1]) if table else 1.0)
        return table
