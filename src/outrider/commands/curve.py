"""The position curve as a small bar plot: u_k by k."""

from collections.abc import Sequence

from rich.bar import Bar
from rich.table import Table

WIDTH = 24
SHOWN = 12


def position_plot(rates: Sequence[float], counts: Sequence[int] = ()) -> Table:
    """Return one row a draft position; the far end of a long curve is left out, and said so.

    Args:
        rates: u_1, u_2, ...
        counts: tokens accepted from each depth, to stand beside them.
    """
    reached = [rate for rate in rates if rate > 0]
    plot = Table.grid(padding=(0, 1))
    plot.add_column(justify="right")
    plot.add_column(width=WIDTH)
    plot.add_column(justify="right")
    plot.add_column(justify="right", style="dim")
    for k, rate in enumerate(reached[:SHOWN], start=1):
        count = str(counts[k - 1]) if k <= len(counts) else ""
        plot.add_row(f"u_{k}", Bar(1.0, 0.0, rate, width=WIDTH, color="green"), f"{rate:.3f}", count)
    if len(reached) > SHOWN:
        plot.add_row("...", f"{len(reached) - SHOWN} more, down to {reached[-1]:.3f}", "")
    return plot
