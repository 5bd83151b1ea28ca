"""Asks one server, many requests at once, and takes the time of every piece of an answer."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Any

import httpx2

from outrider.doctor.web import cut
from outrider.traffic.result import Asked
from outrider.traffic.workload import Workload

PATIENCE_S = 600.0
RUN = 4  # words of which the repetition of a text is told


@dataclass(slots=True)
class Told:
    """What came of some requests."""

    asked: list[Asked] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


class BrokenAnswerError(Exception):
    """An answer that is none."""


def ask_all(url: str, model: str, workload: Workload, concurrency: int) -> Told:
    """Ask every prompt once: so many in flight, or as they arrive."""
    return asyncio.run(_ask_all(url, model, workload, concurrency))


async def _ask_all(url: str, model: str, workload: Workload, concurrency: int) -> Told:
    told = Told()
    # A connection a request: servers close idle ones when they please, and a request that meets that is lost.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx2.AsyncClient(timeout=PATIENCE_S, limits=limits, trust_env=False) as client:
        begin = time.monotonic()

        async def one(number: int) -> None:
            body = workload.body(workload.prompts[number], model)
            try:
                told.asked.append(await _ask(client, url + workload.address, body, number, begin))
            except (httpx2.HTTPError, httpx2.StreamError, BrokenAnswerError, OSError) as error:
                told.failures.append(f"prompt {number}: {cut(error) or type(error).__name__}")

        numbers = range(len(workload.prompts))
        if workload.rate is None:
            await _closed(one, numbers, concurrency)
        else:
            await _open(one, workload.arrivals())
        told.seconds = time.monotonic() - begin
    told.asked.sort(key=lambda asked: asked.prompt)
    return told


async def _closed(one: Callable[[int], Awaitable[None]], numbers: Sequence[int], concurrency: int) -> None:
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            await one(number)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def _open(one: Callable[[int], Awaitable[None]], arrivals: Sequence[float]) -> None:
    async def later(number: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await one(number)

    await asyncio.gather(*(later(number, seconds) for number, seconds in enumerate(arrivals)))


async def _ask(client: httpx2.AsyncClient, url: str, body: dict[str, Any], number: int, begin: float) -> Asked:
    start = time.monotonic()
    pieces: list[float] = []
    texts: list[str] = []
    usage: dict[str, Any] = {}
    async with client.stream("POST", url, json=body) as response:
        if response.status_code != httpx2.codes.OK:
            said = (await response.aread()).decode(errors="replace")
            raise BrokenAnswerError(f"the server answers {response.status_code}: {cut(said)}")
        async for line in response.aiter_lines():
            if (event := _event(line)) is None:
                continue
            usage = event.get("usage") or usage
            text = "".join(_texts(event))
            if text:
                pieces.append(time.monotonic())
                texts.append(text)
    end = time.monotonic()
    return _asked(number, (begin, start, end), pieces, "".join(texts), usage)


def _event(line: str) -> dict[str, Any] | None:
    """Read a line of a stream; None for one that carries nothing."""
    if not line.startswith("data:") or (data := line[5:].strip()) == "[DONE]":
        return None
    try:
        event = json.loads(data)
    except ValueError:
        raise BrokenAnswerError(f"expected JSON in the stream, found {cut(data)}") from None
    if not isinstance(event, dict):
        raise BrokenAnswerError(f"expected an object in the stream, found {cut(data)}")
    if "error" in event:
        raise BrokenAnswerError(f"the server says {cut(event['error'])}")
    return event


def _texts(event: dict[str, Any]) -> Iterator[str]:
    """Yield what was written, thoughts included: they are tokens too."""
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        for text in (choice.get("text"), delta.get("reasoning_content"), delta.get("reasoning"), delta.get("content")):
            if isinstance(text, str):
                yield text


def _asked(
    number: int, times: tuple[float, float, float], pieces: list[float], text: str, usage: dict[str, Any]
) -> Asked:
    begin, start, end = times
    tokens, prompt_tokens = usage.get("completion_tokens"), usage.get("prompt_tokens")
    if not isinstance(tokens, int) or not pieces:
        raise BrokenAnswerError("the answer broke off: no text, or no count of its tokens at its end")
    words = text.split()
    runs = [tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)]
    return Asked(
        prompt=number,
        start=start - begin,
        seconds=end - start,
        ttft_s=pieces[0] - start,
        tokens=tokens,
        prompt_tokens=prompt_tokens if isinstance(prompt_tokens, int) else None,
        largest_gap_s=max((later - sooner for sooner, later in pairwise(pieces)), default=0.0),
        words=len(runs),
        distinct=len(set(runs)),
        digest=sha256(text.encode()).hexdigest()[:16],
    )
