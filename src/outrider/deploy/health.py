"""Waits until a server answers, and says why where it does not."""

import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from outrider.deploy.process import Process, last_line
from outrider.doctor.web import RefusedError, cut, get_text
from outrider.errors import OutriderError, UsageError

PATIENCE_S = 1800.0  # large models are read for many minutes
BETWEEN_S = 0.5
ANSWER_S = 5.0


class ServerError(OutriderError):
    """A server that died, or does not answer."""


def check_free(url: str) -> None:
    """Refuse an address where something listens: it would be taken for the server that is started.

    Raises:
        UsageError: names another way.
    """
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=ANSWER_S).close()
    except OSError:
        return
    raise UsageError(f"Something listens at {parts.netloc} already: stop it, or give another --port.")


def wait_healthy(
    process: Process,
    url: str,
    *,
    title: str,
    patience: float = PATIENCE_S,
    tell: Callable[[float, str], None] = lambda _seconds, _line: None,
) -> float:
    """Return the seconds until the server answered.

    Args:
        process: the server.
        url: its address of health.
        title: the engine, for messages.
        patience: seconds.
        tell: called with the seconds that passed and the last line of the log.

    Raises:
        ServerError: it ended, or did not answer in time.
    """
    start = time.monotonic()
    said = "no answer"
    while (seconds := time.monotonic() - start) < patience:
        check_alive(process, title=title, doing=f"starting, after {seconds:.0f} s")
        try:
            get_text(url, seconds=ANSWER_S)
        except RefusedError as error:
            said = str(error)
        except UsageError as error:
            said = cut(error)
        else:
            return seconds
        tell(seconds, last_line(process.tail()))
        time.sleep(BETWEEN_S)
    raise ServerError(
        f"{title} was started and is not ready after {patience:.0f} s ({said.rstrip('.')}); it was ended. "
        f"The last line of its log: {cut(last_line(process.tail()))}. See {process.log}, or raise --patience."
    )


def check_alive(process: Process, *, title: str, doing: str) -> None:
    """Refuse to go on with a server that has ended.

    Raises:
        ServerError: says how it ended, and where its log is.
    """
    ended = process.ended()
    if ended is not None:
        raise ServerError(
            f"{title} ended with exit code {ended.code} while {doing}. It said: {cut(ended.said)}. "
            f"Its log: {process.log}"
        )
