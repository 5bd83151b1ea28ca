"""A time series of looks: one JSON object a line, written as it comes, so that a crash costs nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import Field

from outrider.deploy.alarm import Alarm
from outrider.deploy.watcher import Tick
from outrider.errors import UsageError
from outrider.results import Record


class Point(Record):
    """One look: ``outrider watch --out FILE``.

    Attributes:
        at: seconds since the epoch.
        seconds: over which was counted; null for what was counted since the server's start.
        rounds, drafted, accepted: counts; the bonus token is not in them.
        acceptance_length, acceptance_rate, position_rates: of these seconds, by the glossary.
        tokens_per_second: written.
        running: requests at work.
        alarm: what changed, in words.
        problem: why nothing could be read.
    """

    at: float
    seconds: float | None = None
    engine: str | None = None
    rounds: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    acceptance_length: float | None = None
    acceptance_rate: float | None = None
    position_rates: list[float] = Field(default_factory=list)
    tokens_per_second: float | None = None
    prefix_cache_hit_rate: float | None = None
    running: float | None = None
    restarted: bool = False
    alarm: str | None = None
    problem: str | None = None


def point(tick: Tick, *, engine: str | None, drafted: int | None = None, alarm: Alarm | None = None) -> Point:
    """Return a look as a point of the series."""
    counts, reading = tick.counts, tick.reading(drafted)
    return Point(
        at=tick.at,
        seconds=tick.seconds,
        engine=engine,
        rounds=counts.rounds if counts else None,
        drafted=counts.drafted if counts else None,
        accepted=counts.accepted if counts else None,
        acceptance_length=reading.tau,
        acceptance_rate=reading.rate,
        position_rates=list(reading.positions),
        tokens_per_second=reading.speed,
        prefix_cache_hit_rate=reading.hits,
        running=counts.running if counts else None,
        restarted=tick.restarted,
        alarm=alarm.said if alarm else None,
        problem=tick.problem,
    )


@dataclass
class Series:
    """An open file."""

    file: IO[str]

    def add(self, one: Point) -> None:
        """Write a point, to the disk."""
        self.file.write(one.model_dump_json(exclude_defaults=True) + "\n")
        self.file.flush()


@contextmanager
def writing(path: Path | None) -> Iterator[Series | None]:
    """Yield a series at the end of a file; None without one.

    Raises:
        UsageError: it cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}; name another place.") from error
    with file:
        yield Series(file)
