"""``outrider watch``: the live view of a server that somebody started. It is only read."""

from dataclasses import dataclass

from outrider.adapters import ADAPTERS
from outrider.adapters.start import STARTERS
from outrider.commands.exit_codes import INTERRUPTED
from outrider.commands.live import Showing, watch
from outrider.commands.screen import stderr, waiting

ALARMED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    url: str
    drafter: str | None
    target: str | None
    command: str | None
    window_s: float
    showing: Showing


def run(request: Request) -> int:
    """Watch; return 1 where the curve changed its shape, 130 where somebody interrupted.

    Raises:
        OutriderError: nothing answers there.
    """
    from outrider.deploy.session import Session, without_counters
    from outrider.deploy.watcher import Watcher
    from outrider.doctor.intake import gather

    with waiting(stderr()) as telling:
        telling.spin(f"Looking at {request.url}")
        known = gather(
            url=request.url,
            commands=[request.command] if request.command else (),
            drafter=request.drafter,
            target=request.target,
            sleep=lambda _seconds: None,
        )
    engine = known.evidence.engine
    title = STARTERS[engine.name].title if engine.name in ADAPTERS else str(engine.name)
    session = Session(Watcher(request.url), without_counters(known.evidence), window_s=request.window_s)
    try:
        alarms = watch(session, request.showing, title=" ".join(filter(None, (title, engine.version))))
    except KeyboardInterrupt:
        return INTERRUPTED
    return ALARMED if alarms else 0
