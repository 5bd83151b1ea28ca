"""A report as people read it in a terminal: the verdict, the curves, a table of evaluations, what was checked."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.commands.text_plot import short, text_plot
from outrider.train.report.result import Checked, Curve, Measured, RunReport

STATUS_STYLES = {
    "converged": "bold green",
    "improving": "bold cyan",
    "undecided": "bold yellow",
    "over-fitted": "bold red",
    "broken": "bold red",
}
STATE_STYLES = {"found": "bold red", "suspected": "yellow", "clear": "green", "not examined": "dim"}
PLOTTED = ("loss", "acceptance length")
ROWS = 12  # of the table
RATES = 4


def print_report(console: Console, report: RunReport) -> None:
    """Print it."""
    console.print(Text(report.headline, style=STATUS_STYLES[report.status]), soft_wrap=True)
    for note in report.notes:
        console.print(Text(note), soft_wrap=True)
    for of in PLOTTED:
        curves = [curve for curve in report.curves if curve.of == of]
        if curves:
            console.print()
            console.print(_plot(of, curves, report.unit))
    if report.evaluations:
        console.print(_evaluations(report))
    console.print(_checks(report.checks))
    for line in report.understood:
        console.print(Text(line, style="dim"), soft_wrap=True)


def _plot(of: str, curves: Sequence[Curve], unit: str) -> Text:
    return text_plot(of, [(c.name, list(zip(c.seen, c.values, strict=True))) for c in curves], unit=unit)


def _evaluations(report: RunReport) -> Table:
    """Return the evaluations, evenly chosen where there are many; the last one is among them."""
    rates = max((len(line.position_rates) for line in report.evaluations), default=0)
    shown = [f"u_{k + 1}" for k in range(min(rates, RATES))]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("step", report.unit, "tau [95 %]", *shown, "held-out loss"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in spread(report.evaluations):
        cells = [f"{rate:.2f}" for rate in line.position_rates[:RATES]]
        table.add_row(
            str(line.step),
            short(line.step if report.unit == "steps" else line.tokens or 0),
            length_text(line),
            *cells,
            *([""] * (len(shown) - len(cells))),
            "" if line.held_out_loss is None else f"{line.held_out_loss:.3f}",
        )
    return table


def spread(lines: Sequence[Measured]) -> list[Measured]:
    """Return at most a dozen lines, evenly chosen from the last one back."""
    step = -(-len(lines) // ROWS)
    return list(lines[::-1][:: max(step, 1)][::-1])


def length_text(line: Measured) -> str:
    """Return the acceptance length with its interval, as far as they were measured."""
    if line.acceptance_length is None:
        return ""
    span = "" if line.low is None or line.high is None else f" [{line.low:.2f}, {line.high:.2f}]"
    return f"{line.acceptance_length:.2f}{span}"


def _checks(checks: Sequence[Checked]) -> Table:
    """Return the checks; those that end alike for one reason stand together."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for (state, text), titles in _alike(checks).items():
        grid.add_row(Text(state, style=STATE_STYLES[state]), Text(f"{'; '.join(titles)}. {text}"))
    return grid


def _alike(checks: Sequence[Checked]) -> dict[tuple[str, str], list[str]]:
    alike: dict[tuple[str, str], list[str]] = {}
    for check in sorted(checks, key=lambda check: list(STATE_STYLES).index(check.state)):
        name = f"{check.code}, {check.title}" if check.code.startswith("F") else check.title
        alike.setdefault((check.state, check.text), []).append(name)
    return alike
