"""A watch: looks, the window that rates are formed of, what went before, alarms, and what the doctor makes of it."""

from collections import deque
from dataclasses import dataclass

from outrider.adapters import Counts
from outrider.deploy.alarm import Alarm, changed
from outrider.deploy.watcher import Tick, Watcher, added
from outrider.doctor.evidence import Counters, Evidence, Measurement
from outrider.doctor.examine import examine

WINDOW_S = 60.0
OPINION_S = 30.0  # between two readings of the doctor
ENOUGH_ROUNDS = 100  # for a reading


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of a look.

    Attributes:
        tick: the look.
        window: the looks of the last minute as one; None until two of them counted.
        alarm: how the curve differs from what went before.
        began: the alarm is new.
        opinion: the doctor's summary; empty until enough was counted.
    """

    tick: Tick
    window: Tick | None
    alarm: Alarm | None
    began: bool
    opinion: str


class Session:
    """A watch over one server.

    Args:
        watcher: looks.
        evidence: what else is known of the deployment.
        window_s: seconds that rates are formed of.
    """

    def __init__(self, watcher: Watcher, evidence: Evidence, *, window_s: float = WINDOW_S) -> None:
        self.watcher = watcher
        self._evidence = evidence
        self._window_s = window_s
        self._recent: deque[Tick] = deque()
        self._past: Counts | None = None
        self._alarm: Alarm | None = None
        self._opinion = ""
        self._read_at = 0.0

    @property
    def drafted(self) -> int | None:
        """Draft length, where it is known."""
        return self._evidence.speculation.num_speculative_tokens

    def step(self) -> View:
        """Look once."""
        tick = self.watcher.look()
        if tick.restarted:
            self._forget()
        elif tick.seconds is not None:
            self._recent.append(tick)
            self._let_go(tick.at)
        window = added(list(self._recent))
        before, self._alarm = self._alarm, self._changed(window)
        began = self._alarm is not None and before is None
        if window is not None and (began or tick.at - self._read_at >= OPINION_S):
            self._read(window, tick.at)
        return View(tick, window, self._alarm, began, self._opinion)

    def _forget(self) -> None:
        self._recent.clear()
        self._past, self._alarm, self._opinion = None, None, ""

    def _let_go(self, now: float) -> None:
        """Move what is older than the window to the past; while the curve differs the past stays what it was."""
        while self._recent and self._recent[0].at < now - self._window_s:
            old = self._recent.popleft().counts
            if self._alarm is None and old is not None:
                self._past = old if self._past is None else self._past.plus(old)

    def _changed(self, window: Tick | None) -> Alarm | None:
        if window is None or window.counts is None or self._past is None:
            return None
        return changed(self._past, window.counts)

    def _read(self, window: Tick, now: float) -> None:
        counters = window.counters()
        enough = (counters.rounds or 0) >= ENOUGH_ROUNDS or counters.mean_acceptance_length is not None
        if not enough:
            return
        self._read_at = now
        self._opinion = examine(self._known(counters)).summary

    def _known(self, counters: Counters) -> Evidence:
        """Return the evidence with what is counted now, and what was before if the curve has changed."""
        series = list(self._evidence.series)
        if self._alarm is not None and self._past is not None:
            earlier = Counters.model_validate({k: v for k, v in self._past.part().items() if v is not None})
            series.append(Measurement(when={"state": "earlier"}, counters=earlier))
        return self._evidence.model_copy(update={"counters": counters, "series": series})


def without_counters(evidence: Evidence) -> Evidence:
    """Return the evidence without measurements, which a watch makes anew."""
    return evidence.model_copy(update={"counters": Counters()})
