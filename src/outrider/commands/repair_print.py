"""A repair as people read it: what the tensors say, a table of what was tried, and what to make of it."""

from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.repair.evidence import Repair, Row

STYLES = {"measured": "bold", "undetermined": "yellow", "given": ""}


def print_repair(console: Console, result: Repair, out: Path) -> None:
    """Print facts, table, notes and verdict."""
    facts = (f"{row.key} {shown(row.value)}" for row in result.rows if row.origin == "tensors")
    console.print(Text(f"The tensors say: {', '.join(facts)}."))
    console.print(_table(result))
    for line in (*_about(result), *_notes(result), *result.notes, *_verdict(result, out)):
        console.print(Text(line), soft_wrap=True)


def _table(result: Repair) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("key", "value", "from", "rival", "1+a", "lead"):
        table.add_column(name, no_wrap=name not in {"value", "rival"}, overflow="fold", min_width=5)
    for row in result.rows:
        if row.origin != "tensors" and (row.origin == "given" or row.best is not None or row.key == "sliding_window"):
            table.add_row(row.key, shown(row.value), Text(row.origin, style=STYLES[row.origin]), *_second(row))
    return table


def shown(value: Any) -> str:
    """Return a value as the table writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def _second(row: Row) -> tuple[str, str, str]:
    """The best other answer and the lead over it; where a default is kept the best one is the other."""
    if row.best is None or row.second is None or row.difference is None:
        return "", "", ""
    if row.best.value == row.value:
        return shown(row.second.value), f"{row.second.length:.2f}", _lead(row.difference, row.low, row.high)
    is_second = row.second.value == row.value
    lead = _lead(-row.difference, -(row.high or 0), -(row.low or 0)) if is_second else ""
    return shown(row.best.value), f"{row.best.length:.2f}", lead


def _lead(value: float, low: float | None, high: float | None) -> str:
    digits = 3 if abs(value) < 0.1 else 2  # noqa: PLR2004 -- so that the column stays narrow
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _about(result: Repair) -> list[str]:
    lines = []
    best = next((row.best for row in result.rows if row.best is not None), None)
    if best is not None:
        lines.append(
            f"1+a: accepted tokens and the bonus token, mean over {result.anchors} anchors; {best.length:.2f} for the "
            f"best reading, which gives right words a mean log-probability of {best.log_prob:.3f}. Rival: the same, "
            "but for the best other answer to that key. Lead: in log-probability a slot (block_size: a block), 99 % "
            "interval."
        )
    effort = f"{result.readings} readings, {result.blocks} blocks in {result.seconds:.0f} s"
    return [*lines, f"Tried: {effort}, on {result.tokens} tokens of {result.texts} texts."]


def _notes(result: Repair) -> list[str]:
    """What the table has no room for, keys with the same note together."""
    keys: dict[str, list[str]] = {}
    for row in result.rows:
        if row.note:
            keys.setdefault(row.note, []).append(row.key)
    return [f"{', '.join(some)}: {note}." for note, some in keys.items()]


def _verdict(result: Repair, out: Path) -> list[str]:
    length = (
        f"Acceptance length {result.acceptance_length:.2f} "
        f"[{result.acceptance_low:.2f}, {result.acceptance_high:.2f}] with whole blocks, greedy."
    )
    if not result.works:
        return [length, "No reading of these tensors makes the pair work: an unfinished drafter, or another target."]
    return [length, f"Written to {out}; rename it to config.json to use it."]
