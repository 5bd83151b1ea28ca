"""A benchmark of servers, and two of them side by side, on the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from outrider.results import Ratio
    from outrider.traffic.result import Row, TrafficResult

LOOPS = 0.5  # of four-word runs differ: below, texts repeat themselves
_SPEED = ("arm", "at once", "tokens/s", "speed-up", "length", "rate", "pays from")
_REST = ("arm", "at once", "first token ms", "each token ms", "same texts", "diversity", "failed")


def print_result(console: Console, result: "TrafficResult") -> None:
    """Print a row for each arm and concurrency, and what should make one wary."""
    console.print(_table(_SPEED, [_speed(row) for row in result.rows]))
    console.print(_table(_REST, [_rest(row) for row in result.rows]))
    for row in result.rows:
        if row.position_rates:
            rates = " ".join(f"{rate:.2f}" for rate in row.position_rates)
            console.print(Text(f"{row.arm}, {row.concurrency} at once: u_k {rates}", style="dim"), soft_wrap=True)
    for line in _doubts(result):
        console.print(Text(line, style="yellow"), soft_wrap=True)
    prompts = f"{len(result.categories)} prompts, up to {result.max_tokens} tokens, {result.repeats} repeats"
    console.print(Text(f"{prompts}; intervals 95 %, prompts resampled. {result.provenance.line()}", style="dim"))


def print_comparison(console: Console, before: "TrafficResult", after: "TrafficResult") -> None:
    """Print what both measured, and why they may not be compared."""
    from outrider.traffic.compare import doubts, pairs

    both = pairs(before, after)
    header = ("arm", "at once", "tokens/s before", "after", "ratio", "apart", "length before", "after")
    console.print(_table(header, [_pair(pair.before, pair.after, pair.throughput, apart=pair.apart) for pair in both]))
    for line in doubts(before, after):
        console.print(Text(f"careful: {line}", style="yellow"), soft_wrap=True)


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in header:
        table.add_column(name, overflow="fold", justify="left" if name == "arm" else "right")
    for line in lines:
        table.add_row(*(Text(word) for word in line))
    return table


def _speed(row: "Row") -> list[str]:
    return [
        row.arm,
        str(row.concurrency),
        _span(row.tokens_per_second),
        _ratio(row.speedup),
        _number(row.acceptance_length, ".2f"),
        _number(row.acceptance_rate, ".0%"),
        _number(row.break_even, ".2f"),
    ]


def _rest(row: "Row") -> list[str]:
    each = None if row.tpot_s is None or row.tpot_p95_s is None else (row.tpot_s * 1e3, row.tpot_p95_s * 1e3)
    return [
        row.arm,
        str(row.concurrency),
        f"{row.ttft_s * 1e3:.0f} ({row.ttft_p95_s * 1e3:.0f})",
        "-" if each is None else f"{each[0]:.1f} ({each[1]:.1f})",
        "-" if row.same_texts is None else f"{row.same_texts[0]}/{row.same_texts[1]}",
        _number(row.diversity, ".2f"),
        str(row.failed),
    ]


def _pair(before: "Row", after: "Row", ratio: float, *, apart: bool) -> list[str]:
    return [
        before.arm,
        str(before.concurrency),
        _span(before.tokens_per_second),
        _span(after.tokens_per_second),
        f"{ratio:.2f}",
        "yes" if apart else "no",
        _number(before.acceptance_length, ".2f"),
        _number(after.acceptance_length, ".2f"),
    ]


def _span(values: tuple[float, float, float]) -> str:
    value, low, high = values
    return f"{value:.1f}" if low == high else f"{value:.1f} ({low:.1f}-{high:.1f})"


def _ratio(ratio: "Ratio | None") -> str:
    return "-" if ratio is None else f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _doubts(result: "TrafficResult") -> list[str]:
    """What should make one wary of the rows."""
    found = [f"{arm} broke off: {why} What it measured before is kept." for arm, why in result.failed.items()]
    for row in result.rows:
        if row.diversity is not None and row.diversity < LOOPS:
            share = f"{row.diversity:.0%} of its four-word runs differ"
            found.append(
                f"{row.arm}, {row.concurrency} at once: its texts repeat themselves ({share}): acceptance is flattered."
            )
    for cell in result.cells:
        found += [f"{cell.arm}, {cell.concurrency} at once: {one}" for one in cell.failures[:1]]
    return [*found, *result.notes]
