"""Server-sent events, and clients that are gone or too slow: neither keeps anything at work."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from outrider.server.answers import Json
from outrider.server.faults import ApiError
from outrider.server.work import Work

T = TypeVar("T")
DONE = b"data: [DONE]\n\n"
GONE = 499  # nobody sees it but the log


def event(data: Json) -> bytes:
    """Return one event; JSON has no line breaks of its own."""
    return b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


class GoneError(Exception):
    """The client closed its connection."""


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(work: Awaitable[T], receive: Receive) -> T:
    """Wait for the work, or end it when the client goes.

    Raises:
        GoneError: the client went first.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise GoneError
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def unless_gone(request: Request, work: Work, answer: Awaitable[T]) -> T:
    """Wait for an answer; nothing is left at work when the client goes.

    Raises:
        GoneError: the client went first.
    """
    try:
        return await _first(answer, request.receive)
    finally:
        work.close()


class EventStream(Response):
    """Chunks as server-sent events; an error before the first is an ordinary answer.

    Args:
        chunks: of the answer.
        work: is ended with the stream, whoever ends it.
        stall_s: a client that takes nothing for so long is given up.
    """

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncIterator[Json], work: Work, *, stall_s: float) -> None:
        self.status_code, self.background = 200, None
        self._chunks, self._work, self._stall_s = chunks, work, stall_s
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            with suppress(GoneError, TimeoutError):
                await _first(self._send(scope, receive, send), receive)
        finally:
            self._work.close()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        try:
            async for chunk in self._chunks:
                if not started:
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                    started = True
                await self._body(send, event(chunk))
        except ApiError as error:
            if not started:
                answer = JSONResponse(error.body.model_dump(), error.status, error.headers)
                await answer(scope, receive, send)
                return
            await self._body(send, event(error.body.model_dump()))
        await self._body(send, DONE)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _body(self, send: Send, body: bytes) -> None:
        async with asyncio.timeout(self._stall_s):
            await send({"type": "http.response.body", "body": body, "more_body": True})
