"""How many nodes pay: expected tokens against the measured cost of a pass. Free of torch.

The cost of a pass is no convex function of its width (kernels work in tiles), so widths of all sizes are compared, that
of all nodes at hand among them, and the search never stops at the first that is worse.
"""

from collections.abc import Sequence
from itertools import zip_longest

from outrider.engine.costs import WIDTHS, Costs


def how_many_pay(reach: Sequence[float], costs: Costs, rows: int, *, least: int = 0) -> int:
    """Number of nodes with the most expected tokens a second.

    Args:
        reach: probability that each node is reached, parents before children; of several rows, their mean.
        costs: what passes cost.
        rows: of the batch.
        least: nodes to take even where plain decoding is best, if there are so many.

    Returns:
        0 where no number of nodes beats plain decoding (and ``least`` is 0).
    """
    most = len(reach) + 1
    widths = [width for width in WIDTHS[1:] if width < most] + [most]
    best, best_pace = (least, 0.0) if 0 < least < most else (0, 1.0)
    expected, taken = 1.0, 0
    for width in widths:
        expected += sum(reach[taken : width - 1])
        taken = width - 1
        pace = expected / costs.of(width, rows)
        if taken >= least and pace > best_pace:
            best, best_pace = taken, pace
    return best


def mean_reach(reaches: Sequence[Sequence[float]]) -> list[float]:
    """Mean over rows of what the n-th node brings: all rows of a batch are as wide as the widest."""
    return [sum(column) / len(reaches) for column in zip_longest(*reaches, fillvalue=0.0)]
