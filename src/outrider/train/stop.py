"""Interrupts and time limits: a run is asked to stop, and does so after the step that is under way."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Reason = Literal["interrupted", "time"]
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Stop:
    """Whether to stop, and why.

    Attributes:
        until: ``time.monotonic()`` at which time is up; None for no limit.
        reason: set when something asked for it.
    """

    until: float | None = None
    reason: Reason | None = None
    _before: dict[int, Any] = field(default_factory=dict)

    @property
    def wanted(self) -> bool:
        """Whether to stop now."""
        if self.reason is None and self.until is not None and time.monotonic() >= self.until:
            self.reason = "time"
        return self.reason is not None

    def _ask(self, number: int, _frame: Any) -> None:
        """Take a signal; a second one is not waited for."""
        self.reason = "interrupted"
        signal.signal(number, self._before[number])


@contextmanager
def stopping(*, minutes: float | None) -> Iterator[Stop]:
    """Yield what says when to stop; signals are asked to, where this is the thread that gets them."""
    stop = Stop(None if minutes is None else time.monotonic() + 60 * minutes)
    listens = threading.current_thread() is threading.main_thread()
    for number in SIGNALS if listens else ():
        stop._before[number] = signal.signal(number, stop._ask)  # noqa: SLF001 -- one of this module's own
    try:
        yield stop
    finally:
        for taken, before in stop._before.items():  # noqa: SLF001 -- one of this module's own
            signal.signal(taken, before)
