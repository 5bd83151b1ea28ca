"""``outrider serve --engine E MODEL``: the pair checked, the engine started, waited for, watched, stopped."""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from outrider.adapters.start import STARTERS, Command, Deployment, Starter, starter
from outrider.commands.exit_codes import INTERRUPTED
from outrider.commands.live import Showing, watch
from outrider.commands.screen import stderr, waiting
from outrider.commands.serve_options import Drafted, Run, Spread, Watched
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.deploy.environment import Found
    from outrider.deploy.process import Process
    from outrider.doctor.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line; ``more`` are words for the engine as they are."""

    engine: str | None
    model: str
    drafted: Drafted
    spread: Spread
    run: Run
    watched: Watched
    more: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A server that may be started."""

    title: str
    starter: Starter
    command: Command
    url: str
    evidence: "Evidence"


def run(request: Request) -> int:
    """Serve until interrupted; return 130 then.

    Raises:
        OutriderError: it cannot be started so, is refused, or died; says why.
    """
    ready = _ready(request)
    if request.run.print_only:
        _print(ready.command)
        return 0
    for line in ready.command.first:
        stderr().print(Text(f"first, on this host: {line}", style="yellow"), soft_wrap=True)
    for host, lines in ready.command.elsewhere.items():
        stderr().print(Text(f"on {host}: {' && '.join(lines)}", style="yellow"), soft_wrap=True)
    try:
        _serve(request, ready)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _ready(request: Request) -> Ready:
    from outrider.commands.serve_plan import deployment_of

    one = _engine(request.engine)
    engine = next(name for name, other in STARTERS.items() if other is one)
    found = _found(one, request.run)
    deployment = deployment_of(engine, request.model, request.drafted, request.spread)
    deployment = replace(deployment, port=request.run.port or one.usual_port, more=tuple(request.more))
    command = one.command(deployment, python=found.python)
    evidence = _checked(request, engine, found.version, deployment, command)
    title = " ".join(filter(None, (one.title, found.version)))
    address = "127.0.0.1" if deployment.host == "0.0.0.0" else deployment.host  # noqa: S104 -- compared, not bound
    return Ready(
        title=title, starter=one, command=command, url=f"http://{address}:{deployment.port}", evidence=evidence
    )


def _engine(name: str | None) -> Starter:
    serving = [key for key, one in STARTERS.items() if one.serves]
    if name is None:
        raise UsageError(
            f"The embedded engine answers no requests over a network yet: give --engine {', '.join(serving)}; "
            "or try outrider generate."
        )
    one = starter(name)
    if not one.serves:
        raise UsageError(f"{one.title}'s own engine serves nothing yet: expected one of {', '.join(serving)}.")
    return one


def _found(one: Starter, how: Run) -> "Found":
    """Return the engine here; a command that is only printed may be for another machine."""
    from outrider.deploy.environment import Found, find

    try:
        return find(one, how.python)
    except UsageError:
        if how.print_only and how.python is None:
            return Found(None, None)
        raise


def _checked(
    request: Request, engine: str, version: str | None, deployment: Deployment, command: Command
) -> "Evidence":
    """Say what speaks against it; refuse where it would not work."""
    from outrider.commands.serve_check import Pair, objections

    pair, anyway = Pair(request.model, request.drafted.drafter), request.run.anyway
    with waiting(stderr()) as telling:
        telling.spin("Checking the pair")
        found, evidence = objections(engine, version, pair, deployment, command.text)
    refusals = [objection.said for objection in found if objection.refuses]
    if refusals and not anyway:
        raise UsageError(f"Not started: {' '.join(refusals)} (--anyway starts it all the same.)")
    for objection in found:
        stderr().print(Text(f"warning: {objection.said}", style="yellow"), soft_wrap=True)
    return evidence


def _print(command: Command) -> None:
    lines = [*command.first, command.text]
    sys.stdout.write("\n".join(lines) + "\n")
    for host, there in command.elsewhere.items():
        sys.stdout.write("".join(f"# on {host}\n{line}\n" for line in there))


def _serve(request: Request, ready: Ready) -> None:
    from outrider.deploy.health import check_free
    from outrider.deploy.process import Process

    check_free(ready.url)
    console = stderr()
    console.print(Text(ready.command.text, style="dim"), soft_wrap=True)
    with Process(ready.command, _log(request.run.log)) as process:
        console.print(Text(f"log: {process.log}", style="dim"), soft_wrap=True)
        _wait(request.run, ready, process)
        _watch(request.watched, ready, process)
        console.print(Text("stopping", style="dim"))


def _log(path: Path | None) -> Path:
    if path is not None:
        return path
    with tempfile.NamedTemporaryFile(prefix="outrider-serve-", suffix=".log", delete=False) as file:
        return Path(file.name)


def _wait(how: Run, ready: Ready, process: "Process") -> None:
    from outrider.deploy.health import wait_healthy

    with waiting(stderr()) as telling:
        seconds = wait_healthy(
            process,
            ready.url + ready.starter.health,
            title=ready.title,
            patience=how.patience,
            tell=lambda passed, line: telling.spin(f"{ready.title} starts, {passed:.0f} s: {line[:80]}"),
        )
    stderr().print(Text(f"{ready.title} answers at {ready.url}/v1 after {seconds:.0f} s", style="green"))


def _watch(watched: Watched, ready: Ready, process: "Process") -> None:
    from outrider.deploy.health import check_alive
    from outrider.deploy.session import Session, without_counters
    from outrider.deploy.watcher import Watcher

    session = Session(Watcher(ready.url), without_counters(ready.evidence))
    showing = Showing(every=watched.every, seconds=watched.seconds, out=watched.out, port=watched.export)

    def alive() -> None:
        check_alive(process, title=ready.title, doing="serving")

    watch(session, showing, title=ready.title, still=alive)
