"""Curves as a plot of characters, for terminals: a mark a point, one kind of mark a curve."""

from collections.abc import Sequence

from rich.text import Text

MARKS = "●○+×"  # noqa: RUF001 -- marks, not letters
STYLES = ("green", "cyan", "yellow", "magenta")
WIDTH, HEIGHT = 60, 12

Points = Sequence[tuple[float, float]]


def text_plot(title: str, curves: Sequence[tuple[str, Points]], *, unit: str) -> Text:
    """Return the plot, with a line below it that tells the marks.

    Args:
        title: stands above.
        curves: names and points; those without points are left out.
        unit: of the horizontal axis.
    """
    shown = [(name, points) for name, points in curves if points][: len(MARKS)]
    every = [point for _, points in shown for point in points]
    if not every:
        return Text()
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    low, high = min(y for _, y in every), max(y for _, y in every)
    cells: dict[tuple[int, int], int] = {}
    for number, (_, points) in reversed(list(enumerate(shown))):  # the first curve stands before the others
        for x, y in points:
            cells[_place(x, left, right, WIDTH), HEIGHT - 1 - _place(y, low, high, HEIGHT)] = number
    plot = Text(f"{title}\n", style="bold")
    for row in range(HEIGHT):
        plot.append(_label(row, low, high), style="dim")
        for column in range(WIDTH):
            index = cells.get((column, row))
            plot.append(" " if index is None else MARKS[index], style="" if index is None else STYLES[index])
        plot.append("\n")
    plot.append(f"{'':>9}└{'─' * (WIDTH - 1)}\n{'':>10}{short(left):<{WIDTH // 2}}", style="dim")
    plot.append(f"{f'{short(right)} {unit}':>{WIDTH - WIDTH // 2}}\n{'':>10}", style="dim")
    for number, (name, _) in enumerate(shown):
        plot.append(MARKS[number], style=STYLES[number])
        plot.append(f" {name}   ", style="dim")
    return plot


def short(value: float) -> str:
    """Return a number in short: 12.3 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def _place(value: float, low: float, high: float, cells: int) -> int:
    """Return the cell of a value, the last one for the highest."""
    return min(int((value - low) / (high - low) * cells), cells - 1) if high > low else 0


def _label(row: int, low: float, high: float) -> str:
    value = {0: high, HEIGHT // 2: (low + high) / 2, HEIGHT - 1: low}.get(row)
    return f"{'' if value is None else f'{value:.3g}':>8} │"
