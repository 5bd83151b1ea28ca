"""A verdict as people read it in a terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.doctor.evidence import Evidence
from outrider.doctor.verdict import Finding, Verdict, Way
from outrider.reports.words import Curve, clean, curves, effect, facts, missing, span, split, spoken

STYLES = {"confirmed": "bold red", "likely": "bold yellow", "possible": "cyan", "refuted": "dim"}
BAR = 20  # cells of a full bar


def print_verdict(console: Console, verdict: Verdict, evidence: Evidence, others: Sequence[Curve] = ()) -> None:
    """Print it, most important first; ``others`` are curves that stand beside the observed one."""
    _line(console, verdict.summary, style="bold")
    grid = Table.grid(padding=(0, 2))
    for name, value in facts(evidence):
        grid.add_row(Text(name, style="dim"), Text(clean(value)))
    console.print(grid)
    suspected, refuted = split(verdict)
    for one in suspected:
        _print_finding(console, one)
    _print_list(console, "Ruled out", [f"{one.code} {spoken(one)}: {'; '.join(one.against)}" for one in refuted])
    _print_curves(console, curves(evidence, others))
    _print_list(console, "Not examined", [f"{need} ({codes})" for need, codes in missing(verdict.not_examined)])
    _print_list(console, "Next", verdict.next)
    _print_list(console, "Notes", verdict.notes)
    if verdict.options:
        _print_ways(console, verdict.options)


def _line(console: Console, text: str, *, style: str = "") -> None:
    console.print(Text(clean(text), style=style), soft_wrap=True)


def _print_finding(console: Console, one: Finding) -> None:
    console.print()
    head = Text()
    head.append(f"{one.code} {spoken(one)}", style="bold")
    head.append(f"  {one.standing}", style=STYLES[one.standing])
    head.append(f"  {bar(one.confidence)} {one.confidence:.0%}")
    if effect(one):
        head.append(f"  {effect(one)}", style="dim")
    console.print(head, soft_wrap=True)
    for mark, lines, style in (("+", one.evidence, ""), ("-", one.against, "dim"), (">", one.remedy, "green")):
        for line in lines:
            _line(console, f"  {mark} {line}", style=style)


def bar(share: float, cells: int = BAR) -> str:
    """Return a bar of characters."""
    full = round(share * cells)
    return "█" * full + "░" * (cells - full)


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print()
        console.print(Text(title, style="bold"))
    for line in lines:
        _line(console, f"  {line}")


def _print_curves(console: Console, found: Sequence[Curve]) -> None:
    if not found:
        return
    console.print()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Accepted up to position", title_justify="left")
    table.add_column("position", justify="right")
    for one in found:
        table.add_column(Text(clean(one.name)), no_wrap=True)
    for k in range(max(len(one.rates) for one in found)):
        cells = [f"{bar(one.rates[k], 10)} {one.rates[k]:.3f}" if k < len(one.rates) else "" for one in found]
        table.add_row(str(k + 1), *cells)
    console.print(table)


def _print_ways(console: Console, found: Sequence[Way]) -> None:
    console.print()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Ways forward", title_justify="left")
    for name in ("", "way", "tokens a round", "tokens/s", "effort", "risk"):
        table.add_column(name, overflow="fold")
    for number, way in enumerate(found, start=1):
        table.add_row(
            str(number),
            Text(clean(way.name)),
            span(way.tokens_per_round),
            span(way.tokens_per_second),
            way.effort,
            Text(clean(way.risk)),
        )
    console.print(table)
    for number, way in enumerate(found, start=1):
        if way.command:
            _line(console, f"  {number}  {way.command}")
