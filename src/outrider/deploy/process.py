"""A server of another engine as a process of ours: its log in a file, its end certain."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from outrider.adapters.lines import failure, plain
from outrider.adapters.start import Command
from outrider.errors import OutriderError

KEEPER = Path(__file__).with_name("keeper.py")
GRACE_S = 30.0  # until a server that was asked to end is ended by force
TAIL_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Exit:
    """How a server ended.

    Attributes:
        code: its exit code.
        said: the last error in its log, or its last line.
    """

    code: int
    said: str


class Process:
    """A running server. Use as a context manager: leaving it ends the server and all that it started.

    Args:
        command: what starts it.
        log: a file for what it prints.
        grace: seconds until it is ended by force.
    """

    def __init__(self, command: Command, log: Path, *, grace: float = GRACE_S) -> None:
        self.command = command
        self.log = log
        self._grace = grace
        try:
            with log.open("wb") as file:
                self._keeper = subprocess.Popen(  # noqa: S603 -- our own file, no shell
                    [sys.executable, "-I", str(KEEPER), str(grace), *command.words],
                    stdin=subprocess.PIPE,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env=_environment(command),
                    start_new_session=True,  # Ctrl-C is ours to hear
                )
        except OSError as error:
            raise OutriderError(
                f"Cannot write the server's log {log}: {error.strerror}; name another place."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ended(self) -> Exit | None:
        """Return how it ended; None while it runs."""
        code = self._keeper.poll()
        if code is None:
            return None
        lines = self.tail()
        return Exit(code, failure(lines) or next((line for line in reversed(lines) if line.strip()), "nothing"))

    def tail(self) -> list[str]:
        """Return the end of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
                return plain(file.read().decode(errors="replace"))
        except OSError:
            return []

    def stop(self) -> None:
        """End it, by force where it does not end by itself; a second call does nothing."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        self._keeper.wait(self._grace + 10)


def _environment(command: Command) -> dict[str, str]:
    """Return what the server is started under: output as it comes, and not the packages of this process."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"PYTHONUNBUFFERED": "1"} | dict(command.environment)


def last_line(lines: Sequence[str]) -> str:
    """Return the last line that says something."""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
