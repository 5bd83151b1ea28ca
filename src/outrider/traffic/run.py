"""Arms one after the other, again and again: a server is started for each, asked, and stopped.

A cell is one arm at one concurrency, once. What was measured is kept whatever breaks afterwards.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from outrider.adapters import Counts
from outrider.adapters.start import STARTERS, Command
from outrider.deploy.health import ServerError, check_alive, check_free, wait_healthy
from outrider.deploy.process import Process
from outrider.deploy.watcher import Watcher
from outrider.doctor.lossless.server import Server
from outrider.errors import OutriderError
from outrider.traffic.client import Told, ask_all
from outrider.traffic.result import ArmAbout, Cell
from outrider.traffic.workload import Workload


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of decoding.

    Attributes:
        about: what it is.
        url: of its server.
        command: what starts it; None for a server that runs already.
    """

    about: ArmAbout
    url: str
    command: Command | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How arms are measured.

    Attributes:
        concurrencies: requests in flight, one after the other.
        repeats: how often each cell is measured, each time on a server started anew.
        warmup: requests before any is timed.
        patience: seconds until a server that does not answer is ended.
        logs: a folder for what servers print.
    """

    concurrencies: Sequence[int]
    repeats: int
    warmup: int
    patience: float
    logs: Path


@dataclass(slots=True)
class Measured:
    """Cells, and arms that broke off."""

    cells: list[Cell] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def run(
    arms: Sequence[Arm],
    workload: Workload,
    protocol: Protocol,
    *,
    tell: Callable[[str], None] = lambda _line: None,
    keep: Callable[[Measured], None] = lambda _measured: None,
) -> Measured:
    """Measure; every repeat goes through all arms, beginning with another one each time.

    Args:
        arms: what to compare.
        workload: what is asked.
        protocol: how.
        tell: called with a line of progress.
        keep: called after each cell with all there is so far.
    """
    measured = Measured()
    for repeat in range(protocol.repeats):
        first = repeat % len(arms)
        for arm in (*arms[first:], *arms[:first]):
            if arm.about.name in measured.failed:
                continue
            try:
                for cell in _cells(arm, workload, protocol, repeat, tell):
                    measured.cells.append(cell)
                    keep(measured)
            except OutriderError as error:
                measured.failed[arm.about.name] = str(error)
                tell(f"{arm.about.name}: {error}")
                keep(measured)
    return measured


def _cells(
    arm: Arm, workload: Workload, protocol: Protocol, repeat: int, tell: Callable[[str], None]
) -> Iterator[Cell]:
    """Yield the cells of one server."""
    name = arm.about.name
    with _served(arm, protocol, repeat, tell) as alive:
        model = Server(arm.url).model
        warm = replace(workload, prompts=workload.prompts[: protocol.warmup], rate=None)
        if warm.prompts:
            ask_all(arm.url, model, warm, 1)
        watcher = Watcher(arm.url)
        for concurrency in protocol.concurrencies:
            watcher.look()
            told = ask_all(arm.url, model, workload, concurrency)
            tick = watcher.look()
            cell = _cell(arm, concurrency, repeat, told, tick.counts if tick.seconds is not None else None)
            speed = sum(asked.tokens for asked in told.asked) / told.seconds if told.seconds else 0.0
            tell(
                f"{name}, {concurrency} at once, repeat {repeat + 1}: {speed:.1f} tokens/s, {len(told.failures)} failed"
            )
            yield cell
            alive()
            if told.failures and not told.asked:
                raise ServerError(f"no request was answered; the first: {told.failures[0]}")


@contextmanager
def _served(arm: Arm, protocol: Protocol, repeat: int, tell: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Run an arm's server; yield what raises where it has ended."""
    if arm.command is None:
        yield lambda: None
        return
    starter, title = STARTERS[arm.about.engine], arm.about.name
    check_free(arm.url)
    log = protocol.logs / f"{title.replace('/', '-').replace(':', '-')}-{repeat}.log"
    with Process(arm.command, log) as process:
        seconds = wait_healthy(process, arm.url + starter.health, title=title, patience=protocol.patience)
        tell(f"{title}: up after {seconds:.0f} s")
        yield lambda: check_alive(process, title=title, doing="being measured")


def _cell(arm: Arm, concurrency: int, repeat: int, told: Told, counts: Counts | None) -> Cell:
    return Cell(
        arm=arm.about.name,
        concurrency=concurrency,
        repeat=repeat,
        seconds=told.seconds,
        asked=told.asked,
        rounds=counts.rounds if counts else None,
        drafted=counts.drafted if counts else None,
        accepted=counts.accepted if counts else None,
        per_position=list(counts.per_position) if counts else [],
        length=counts.length if counts else None,
        failures=told.failures,
    )


def log_folder() -> Path:
    """Return a new folder for what servers print."""
    return Path(tempfile.mkdtemp(prefix="outrider-bench-"))
