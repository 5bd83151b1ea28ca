"""A repair as people read it: a table of keys with their evidence, and what to make of it."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.repair.evidence import Repair, Row, Tried

STYLES = {"tensors": "dim", "measured": "bold", "undetermined": "yellow", "given": ""}


def print_repair(console: Console, result: Repair, out: Path) -> None:
    """Print table, notes and verdict."""
    console.print(_table(result))
    for line in _lines(result, out):
        console.print(Text(line), soft_wrap=True)


def _table(result: Repair) -> Table:
    table = Table("key", "value", "from", "best", "second best", "difference", "note")
    for row in result.rows:
        table.add_row(
            row.key,
            shown(row.value),
            Text(row.origin, style=STYLES[row.origin]),
            _tried(row.best),
            _tried(row.second),
            _difference(row),
            row.note,
        )
    return table


def shown(value: Any) -> str:
    """Return a value as the table writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def _tried(tried: Tried | None) -> str:
    if tried is None:
        return ""
    return f"{shown(tried.value)}: {tried.length:.2f}, {tried.log_prob:.3f}"


def _difference(row: Row) -> str:
    if row.difference is None:
        return ""
    return f"{row.difference:.3f} [{row.low:.3f}, {row.high:.3f}]"


def _lines(result: Repair, out: Path) -> list[str]:
    about = (
        f"best, second best: answer, 1 + mean accepted over {result.anchors} anchors, mean log-probability of right "
        "words. difference: nats a slot (block_size: nats a block), 99 % interval."
    )
    effort = (
        f"{result.readings} readings, {result.blocks} blocks in {result.seconds:.0f} s, on {result.tokens} tokens of "
        f"{result.texts} texts."
    )
    return [about, effort, *result.notes, *_verdict(result, out)]


def _verdict(result: Repair, out: Path) -> list[str]:
    length = (
        f"Acceptance length {result.acceptance_length:.2f} "
        f"[{result.acceptance_low:.2f}, {result.acceptance_high:.2f}] with whole blocks, greedy."
    )
    if not result.works:
        return [length, "No reading of these tensors makes the pair work: an unfinished drafter, or another target."]
    open_keys = [row.key for row in result.rows if row.origin == "undetermined"]
    unsure = f" Undetermined, and set to defaults: {', '.join(open_keys)}." if open_keys else ""
    return [length + unsure, f"Written to {out}; rename it to config.json to use it."]
