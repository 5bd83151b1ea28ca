"""Asks a server that may hang, lie or be gone. Every request has a time limit; answers are cut at a size."""

import json
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from outrider.errors import UsageError

MOST_BYTES = 64 << 20


class RefusedError(UsageError):
    """The server answers, and says no."""


def base(url: str) -> str:
    """Return the address without what is put behind it.

    Raises:
        UsageError: no address of a server.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(f"{url!r}: expected the address of a server, e.g. http://localhost:8000.")
    return url.rstrip("/").removesuffix("/v1").removesuffix("/metrics")


def get_text(url: str, *, seconds: float, body: dict[str, Any] | None = None) -> str:
    """Return what stands there; with a body it is posted.

    Raises:
        RefusedError: the server says no.
        UsageError: not reachable, or no answer in time.
    """
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data=data, headers={"Content-Type": "application/json"})  # noqa: S310 -- base() checks
    try:
        with urlopen(request, timeout=seconds) as response:  # noqa: S310 -- http or https, checked by base()
            return str(response.read(MOST_BYTES).decode(errors="replace"))
    except HTTPError as error:
        with error:
            said = error.read(300).decode(errors="replace")
        raise RefusedError(f"{url} answers {error.code}: {cut(said)}.") from error
    except TimeoutError as error:
        raise _late(url, seconds) from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _late(url, seconds) from error
        raise UsageError(f"Cannot reach {url}: {error.reason}. Is the server up?") from error
    except (OSError, HTTPException, ValueError) as error:
        raise UsageError(f"{url}: expected an answer, found {cut(error)}.") from error


def get_json(url: str, *, seconds: float, body: dict[str, Any] | None = None) -> Any:
    """Return what stands there, read as JSON.

    Raises:
        RefusedError, UsageError: as for `get_text`, or it is no JSON.
    """
    text = get_text(url, seconds=seconds, body=body)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{url}: expected JSON, found {cut(text)}.") from error


def cut(found: object) -> str:
    """Return the beginning of what was found, on one line."""
    text = " ".join(str(found).split())
    return text if len(text) <= 160 else text[:157] + "..."  # noqa: PLR2004 -- of a line


def _late(url: str, seconds: float) -> UsageError:
    return UsageError(f"{url} gave no answer within {seconds:g} s; it hangs or is overloaded.")
