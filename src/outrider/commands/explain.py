"""``outrider explain`` and ``outrider doctor --list``: the rules, and what each finds."""

import sys

from rich import box
from rich.markdown import Markdown
from rich.table import Table

from outrider.commands.screen import stdout
from outrider.doctor.rule import RULES, rule


def run(code: str) -> None:
    """Print a rule's page.

    Raises:
        UnknownNameError: there is no such rule; says the nearest.
    """
    page = rule(code).page
    console = stdout()
    if console.is_terminal:
        console.print(Markdown(page))
    else:
        sys.stdout.write(page if page.endswith("\n") else page + "\n")


def run_list() -> None:
    """Print all rules: code, name, cause, and how deep one must look for it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("code", "name", "cause", "depth"):
        table.add_column(name, overflow="fold")
    for one in RULES:
        table.add_row(one.code, one.name, one.cause, one.depth)
    stdout().print(table)
