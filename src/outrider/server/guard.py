"""What stands before every request: its id, host, key, size and log line. Pure ASGI, so that streams stay streams."""

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outrider.server.faults import ApiError
from outrider.server.keys import Keys
from outrider.server.logs import LOGGER
from outrider.server.measures import Measures
from outrider.server.settings import Settings

LOG = logging.getLogger(LOGGER)
OPEN_TO_ALL = frozenset({"/", "/health", "/page.css", "/page.js", "/page.svg"})
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
CLOSE = {"Connection": "close"}  # what is left of the body is not read
SAFE_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}


class Guard:
    """Lets requests in, one by one.

    Args:
        app: behind it.
        settings: who may come in, and with how much.
        measures: is told of refusals.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings, measures: Measures) -> None:
        self._app, self._settings, self._measures = app, settings, measures
        self._keys = Keys(settings.keys)
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else uuid4().hex
        passage = _Passage(scope, send, request_id)
        self._open += 1
        try:
            await self._pass(scope, headers, receive, passage)
        finally:
            self._open -= 1
            passage.log()
            if passage.status >= 400:  # noqa: PLR2004 -- HTTP
                self._measures.refused(passage.status)

    async def _pass(self, scope: Scope, headers: Headers, receive: Receive, passage: "_Passage") -> None:
        try:
            self._check(scope, headers)
            body = _Body(receive, self._settings)
            await self._app(scope, body.receive, passage.send)
        except ApiError as error:
            if not passage.status:
                answer = JSONResponse(error.body.model_dump(), error.status, error.headers)
                await answer(scope, receive, passage.send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        limits = self._settings.limits
        if self._open > limits.open_requests:
            raise ApiError(
                503,
                f"{limits.open_requests} requests are open, as many as this server answers at once; try again soon.",
                kind="server_error",
                code="too_many_open",
                headers={"Retry-After": "1"},
            )
        self._check_host(headers.get("host", ""))
        if scope["path"] not in OPEN_TO_ALL and not self._keys.allow(_authorization(headers)):
            raise ApiError(
                401,
                "A valid API key is needed: send it as the header 'Authorization: Bearer KEY'.",
                kind="authentication_error",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > limits.body_bytes:
            raise _too_large(limits.body_bytes)

    def _check_host(self, host: str) -> None:
        """Refuse names that are not ours: a web page could have pointed one at this address (DNS rebinding)."""
        name = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
        if self._settings.hosts and name.lower() not in self._settings.hosts:
            raise ApiError(
                421,
                f"This server is not called {name[:100]!a}: expected {' or '.join(self._settings.hosts)}. "
                "Start it with --host to serve under other names.",
                code="wrong_host",
            )


def _authorization(headers: Headers) -> bytes | None:
    value = headers.get("authorization")
    return None if value is None else value.encode("latin-1")


def _too_large(most: int) -> ApiError:
    return ApiError(
        413,
        f"The request's body is larger than {most} bytes, the most that is read; send less.",
        code="too_large",
        headers=CLOSE,
    )


class _Body:
    """A request's body as it comes: no more than allowed, and no slower."""

    def __init__(self, receive: Receive, settings: Settings) -> None:
        self._receive, self._limits = receive, settings.limits
        self._taken, self._whole = 0, False
        self._late_at = time.monotonic() + settings.limits.body_s

    async def receive(self) -> Message:
        if self._whole:  # what comes now is the client's leaving, whenever that is
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._late_at - time.monotonic()))
        except TimeoutError:
            raise ApiError(
                408,
                f"The request's body did not arrive within {self._limits.body_s:g} s; send it faster, or less of it.",
                code="slow_body",
                headers=CLOSE,
            ) from None
        self._taken += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._taken > self._limits.body_bytes:
            raise _too_large(self._limits.body_bytes)
        return message


class _Passage:
    """One request on its way through: what was answered, how long it took."""

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        self._scope, self._send, self._request_id = scope, send, request_id
        self._begun = time.monotonic()
        self.status = 0
        self._state: dict[str, Any] = scope.setdefault("state", {})

    async def send(self, message: Message) -> None:
        """Send on, with our headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._request_id
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    def log(self) -> None:
        """Write the request's line; pages and metrics that are read every second are not worth one."""
        level = logging.INFO if self._scope["method"] == "POST" or self.status >= 400 else logging.DEBUG  # noqa: PLR2004
        fields = {
            "id": self._request_id,
            "method": self._scope["method"],
            "path": self._scope["path"],
            "status": self.status or "gone",
            "seconds": round(time.monotonic() - self._begun, 4),
            **(self._state["work"].log_fields() if "work" in self._state else {}),
        }
        LOG.log(level, "request", extra={"fields": fields})
