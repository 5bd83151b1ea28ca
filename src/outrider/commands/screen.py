"""The terminal: results go to standard output, everything about them to standard error.

Spinners and bars show only on a terminal, and never reach a pipe or a log.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.status import Status


def stdout(*, width: int | None = None) -> Console:
    """Return the console for results; ``width`` in columns where the screen's own is not to count."""
    return Console(highlight=False, markup=False, emoji=False, width=width)


def stderr() -> Console:
    """Return the console for what is said about results."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


class Waiting:
    """Tells what takes long: a spinner on a terminal, else nothing but notable lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def spin(self, line: str) -> None:
        """Show a spinner with these words, in place of the one before."""
        self.stop()
        if self._console.is_terminal:
            self._status = self._console.status(Text(line))
            self._status.start()

    def say(self, line: str) -> None:
        """Print a line that stays, and go on spinning with it."""
        self.stop()
        self._console.print(Text(line, style="dim"))
        self.spin(line)

    def stop(self) -> None:
        """Take the spinner away."""
        if self._status is not None:
            self._status.stop()
            self._status = None


@contextmanager
def waiting(console: Console) -> Iterator[Waiting]:
    """Yield something to tell; its spinner is gone at the end, whatever happens."""
    telling = Waiting(console)
    try:
        yield telling
    finally:
        telling.stop()
