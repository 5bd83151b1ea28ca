"""The live view of a server: one line that is written anew on a terminal, one line a look elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from outrider.commands.screen import stderr
from outrider.deploy.exporter import Exported, exporting
from outrider.deploy.series import Series, point, writing
from outrider.deploy.session import Session, View

BARS = " ▁▂▃▄▅▆▇█"
SHOWN = 16  # positions of a curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """How a watch is shown and kept.

    Attributes:
        every: seconds between looks.
        seconds: until it ends; None for never.
        out: a file for the time series.
        port: of the exporter.
    """

    every: float
    seconds: float | None = None
    out: Path | None = None
    port: int | None = None


def watch(session: Session, showing: Showing, *, title: str, still: Callable[[], None] = lambda: None) -> int:
    """Show until the time is over or somebody interrupts; return how many alarms there were.

    Args:
        session: the watch.
        showing: how.
        title: what stands before the line.
        still: called before each look; raises where there is nothing left to look at.
    """
    alarms = 0
    end = None if showing.seconds is None else time.monotonic() + showing.seconds
    with writing(showing.out) as series, exporting(showing.port) as exported, _line(stderr()) as show:
        while True:
            still()
            view = session.step()
            alarms += view.began
            show(title, view)
            _keep(session, view, series, exported)
            if end is not None and time.monotonic() + showing.every > end:
                return alarms
            time.sleep(showing.every)


def _keep(session: Session, view: View, series: Series | None, exported: Exported | None) -> None:
    adapter = session.watcher.adapter
    engine = adapter.name if adapter else None
    if series is not None:
        alarm = view.alarm if view.began else None
        series.add(point(view.tick, engine=engine, drafted=session.drafted, alarm=alarm))
    if exported is not None:
        exported.update(view.tick, view.window, engine=engine, alarm=view.alarm is not None)


@contextmanager
def _line(console: Console) -> Iterator[Callable[[str, View], None]]:
    """Yield what shows a view: in place on a terminal; alarms stay on the screen."""
    if not console.is_terminal:
        yield lambda title, view: _print(console, title, view)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(title: str, view: View) -> None:
            if view.began:
                live.console.print(_alarmed(view))
            live.update(view_text(title, view), refresh=True)

        yield show


def _print(console: Console, title: str, view: View) -> None:
    if view.began:
        console.print(_alarmed(view), soft_wrap=True)
    console.print(view_text(title, view), soft_wrap=True)


def _alarmed(view: View) -> Text:
    said = view.alarm.said if view.alarm else ""
    opinion = f" The doctor: {view.opinion}" if view.opinion else ""
    clock = time.strftime("%H:%M:%S", time.localtime(view.tick.at))
    return Text(f"{clock} alarm: {said}.{opinion}", style="bold red")


def view_text(title: str, view: View) -> Text:
    """Return the line."""
    text = Text(title, style="bold")
    for part, style in _parts(view):
        text.append(" · ", style="dim")
        text.append(part, style=style)
    return text


def _parts(view: View) -> list[tuple[str, str]]:
    if view.tick.problem is not None:
        return [(view.tick.problem, "yellow")]
    reading = (view.window or view.tick).reading()
    counts = view.tick.counts
    parts = [("the server was restarted", "yellow")] if view.tick.restarted else []
    if reading.speed is not None:
        parts.append((f"{reading.speed:.1f} tokens/s", ""))
    if reading.tau is not None:
        parts.append((f"length {reading.tau:.2f}", "green"))
    if reading.positions:
        parts.append((f"{curve_text(reading.positions)} u_1 {reading.positions[0]:.2f}", ""))
    if counts is not None and counts.running is not None:
        parts.append((f"{counts.running:.0f} running", ""))
    if view.opinion:
        parts.append((view.opinion, "dim"))
    elif reading.tau is None:
        parts.append(("no round of speculation yet", "dim"))
    return parts


def curve_text(rates: Sequence[float]) -> str:
    """Return position rates as a row of bars."""
    return "".join(BARS[min(len(BARS) - 1, round(rate * (len(BARS) - 1)))] for rate in rates[:SHOWN])
