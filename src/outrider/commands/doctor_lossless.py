"""``outrider doctor --lossless``: whether a server's text is the target's own."""

import sys
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from outrider.commands.screen import stderr, stdout, waiting

if TYPE_CHECKING:
    from outrider.doctor.lossless import Lossless

CODES = {"lossless": 0, "near_ties_only": 0, "differs": 1, "not_decidable": 2}
STYLES = {"lossless": "green", "near_ties_only": "green", "differs": "bold red", "not_decidable": "yellow"}
PLACES = 5  # first differences that are shown


def run(url: str, reference: str | None, *, as_json: bool) -> int:
    """Print the check; return the exit code: 1 where texts differ, 2 where that cannot be decided.

    Raises:
        UsageError: a server cannot be reached or does not answer.
    """
    from outrider.doctor.lossless import check

    with waiting(stderr()) as telling:
        found = check(url, reference=reference, told=telling.spin)
    if as_json:
        sys.stdout.write(found.model_dump_json(indent=1) + "\n")
    else:
        _print(found)
    return CODES[found.outcome]


def _print(found: "Lossless") -> None:
    from outrider.doctor.lossless.judge import where
    from outrider.reports.words import clean

    console = stdout()
    head = Text(f"{found.outcome.replace('_', ' ')}: ", style=STYLES[found.outcome])
    console.print(head + Text(clean(found.summary), style="bold"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("condition", "asked", "equal", "near-ties", "differ", "drift, nats"):
        table.add_column(name, justify="left" if name == "condition" else "right")
    for one in found.conditions:
        drift = "" if one.drift is None else f"{one.drift:.2g}"
        table.add_row(one.name, str(one.asked), str(one.equal), str(one.near_ties), str(one.differ), drift)
    console.print(table)
    for place in found.places[:PLACES]:
        console.print(Text(clean(f"  {'near-tie' if place.tie else 'differs'}: {where(place)}")), soft_wrap=True)
    for law in found.laws:
        line = (
            f"  word {law.position} after {law.prompt!r}, {law.samples} drawn: chance of such counts {law.chance:.2g}"
        )
        console.print(Text(clean(line)), soft_wrap=True)
    for note in found.notes:
        console.print(Text(note, style="dim"), soft_wrap=True)
