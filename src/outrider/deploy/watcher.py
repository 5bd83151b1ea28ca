"""Looks at a server's counters again and again: what was counted in between, by the definitions of the glossary.

A look that fails is told and does not end the watch: a server may be busy, restarting, or gone for good.
"""

import time
from dataclasses import dataclass, replace

from outrider.adapters import ADAPTERS, Adapter, Counts, adapter_of_metrics
from outrider.adapters.metrics import read_metrics
from outrider.doctor.evidence import Counters
from outrider.doctor.observation.reading import Reading, read
from outrider.doctor.web import RefusedError, base, get_text
from outrider.errors import UsageError

ANSWER_S = 5.0
HINT = "Start the server with its metrics on (SGLang: --enable-metrics, llama.cpp: --metrics)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One look.

    Attributes:
        at: seconds since the epoch.
        seconds: since the look before; None for the first, and after a restart.
        counts: counted in between; since the server's start where ``seconds`` is None.
        problem: why nothing could be read; None where something was.
        restarted: the counters fell.
    """

    at: float
    seconds: float | None = None
    counts: Counts | None = None
    problem: str | None = None
    restarted: bool = False

    def reading(self, drafted: int | None = None) -> Reading:
        """Return the numbers by one definition."""
        return read(self.counters(), drafted)

    def counters(self) -> Counters:
        """Return them as a part of evidence."""
        part = {} if self.counts is None else self.counts.part(seconds=self.seconds)
        return Counters.model_validate({key: value for key, value in part.items() if value is not None})


class Watcher:
    """Looks at one server.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self.url = base(url)
        self.adapter: Adapter | None = None
        self._before: tuple[float, Counts] | None = None

    def look(self) -> Tick:
        """Look once."""
        at, clock = time.time(), time.monotonic()
        try:
            now = self._counts()
        except UsageError as error:
            return Tick(at=at, problem=str(error))
        before, self._before = self._before, (clock, now)
        if before is None:
            return Tick(at=at, counts=now)
        between = now.since(before[1])
        if between is None:
            return Tick(at=at, counts=now, restarted=True)
        return Tick(at=at, seconds=clock - before[0], counts=between)

    def _counts(self) -> Counts:
        prefixes = tuple(adapter.prefix for adapter in ADAPTERS.values())
        try:
            text = get_text(f"{self.url}/metrics", seconds=ANSWER_S)
        except RefusedError as error:
            raise UsageError(f"{error} {HINT}") from error
        samples = read_metrics(text, lambda line: line.startswith(prefixes))
        adapter = adapter_of_metrics(samples)
        if adapter is None:
            raise UsageError(f"{self.url}/metrics holds no numbers of a known engine ({', '.join(ADAPTERS)}).")
        self.adapter = adapter
        return adapter.counts(samples)


def added(ticks: list[Tick]) -> Tick | None:
    """Return several looks as one: counts and times summed; None where none of them counted over a time."""
    told = [tick for tick in ticks if tick.counts is not None and tick.seconds is not None]
    if not told:
        return None
    total = told[0]
    for tick in told[1:]:
        assert total.counts is not None  # noqa: S101 -- chosen so above
        assert tick.counts is not None  # noqa: S101 -- likewise
        total = replace(
            total,
            at=tick.at,
            seconds=(total.seconds or 0.0) + (tick.seconds or 0.0),
            counts=total.counts.plus(tick.counts),
        )
    return total
