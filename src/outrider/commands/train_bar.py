"""A bar for long work counted in tokens or texts: share, rate and time left; off a terminal, now and then a line."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

QUIET_SECONDS = 30.0  # between two lines where there is no terminal


class Bar:
    """What is told of progress.

    Args:
        console: standard error.
        progress: the bar; not shown off a terminal.
        what: is being done.
        unit: of the rate.
        total: of what the bar counts; None where no end is known.
        done: of it, before this run.
    """

    def __init__(
        self, console: Console, progress: Progress, *, what: str, unit: str, total: int | None, done: int
    ) -> None:
        self._console, self._progress, self._what, self._unit = console, progress, what, unit
        self._total, self._done, self._counted = total, done, 0
        self._task = progress.add_task(what, total=total, completed=done, rate="")
        self._begun = self._said = time.perf_counter()

    def add(self, steps: int, counted: int) -> None:
        """Go on by ``steps`` of the total; ``counted`` is what the rate counts."""
        self._done += steps
        self._counted += counted
        now = time.perf_counter()
        rate = f"{self._counted / max(now - self._begun, 1e-9):,.0f} {self._unit}/s"
        self._progress.update(self._task, completed=self._done, rate=rate)
        if not self._console.is_terminal and now - self._said > QUIET_SECONDS:
            self._said = now
            share = f"{self._done / self._total:.0%}, " if self._total else ""
            self._console.print(Text(f"{self._what}: {share}{self._done:,} done, {rate}"))


@contextmanager
def bar(console: Console, what: str, *, unit: str, total: int | None, done: int = 0) -> Iterator[Bar]:
    """Show a bar; it is gone at the end."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Bar(console, progress, what=what, unit=unit, total=total, done=done)
