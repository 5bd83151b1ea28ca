"""What each fault costs a pair, as a table, beside what others published."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.doctor.ablation.published import published
from outrider.doctor.ablation.table import AblationTable, Entry


def print_table(console: Console, found: AblationTable, missing: Sequence[str] = ()) -> None:
    """Print the pair as it is, every fault with its effect in tokens a round, the dearest first, and the checks.

    Args:
        console: where to.
        found: what was measured.
        missing: faults that could not be tried, and why.
    """
    healthy = found.healthy.interval()
    line = f"The pair here keeps {healthy.value:.2f} tokens a round [{healthy.low:.2f}, {healthy.high:.2f}]"
    console.print(Text(f"{line}, {found.healthy.rounds:,.0f} rounds. With each fault put in:"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("fault", "cause", "1+a", "effect [95 %]", "published"):
        table.add_column(name, overflow="fold", justify="right" if name == "1+a" else "left")
    for entry in sorted(found.entries, key=lambda one: one.counts.length):
        length = f"{entry.counts.length:.2f}"
        table.add_row(entry.fault.label, entry.fault.cause, length, _effect(found, entry), _published(entry))
    console.print(table)
    for line in (*(_check(found, entry) for entry in found.checks), *missing):
        console.print(Text(line, style="dim"), soft_wrap=True)


def _effect(found: AblationTable, entry: Entry) -> str:
    effect = found.effect(entry)
    return f"{effect.value:+.2f} [{effect.low:+.2f}, {effect.high:+.2f}]"


def _check(found: AblationTable, entry: Entry) -> str:
    parted, texts = entry.counts.parted(found.healthy), len(found.healthy.rounds_X)
    return (
        f"{entry.fault.label}, decoded here: {_effect(found, entry)} tokens a round; {parted} of {texts} texts part "
        "from those decoded alone. The engine here is exact: more than near-ties would be a defect."
    )


def _published(entry: Entry) -> str:
    kept = sorted(one.kept for one in published(entry.fault.cause))
    return "" if not kept else f"{kept[0]:.0%} to {kept[-1]:.0%} kept"
