"""The messages between the benchmark and a worker: one JSON object a line, over pipes.

The worker speaks first (``Ready``); each ``Request`` gets an ``Answer``, each ``PeakRequest`` a
``Peak``.
"""

from typing import Literal

from pydantic import Field, NonNegativeInt, TypeAdapter

from outrider.results import Record


class Ready(Record):
    """The model is loaded.

    Attributes:
        ready: What the worker is: engine, version, dtype, threads.
        load_seconds: From the call of the loader to its return, imports before it left out.
        rss_before_load: Resident bytes once the libraries were imported.
    """

    ready: dict[str, str]
    load_seconds: float
    rss_before_load: int | None


class Request(Record):
    """Generate greedily, going on past the end-of-text token."""

    prompt_ids: list[int] = Field(min_length=1)
    max_tokens: int = Field(ge=1)


class PeakRequest(Record):
    """Tell the peak memory."""

    peak: Literal[True] = True


class Answer(Record):
    """The tokens of one request and what they cost.

    Attributes:
        seconds: The whole request.
        prefill_seconds: Its part until the first token was decided.
        step_seconds: Each pass after that, where the engine tells.
    """

    tokens: list[int]
    seconds: float
    prefill_seconds: float
    step_seconds: list[float] | None = None
    rounds: NonNegativeInt
    accepted: NonNegativeInt


class Peak(Record):
    """Peak memory over ``rss_before_load``."""

    peak_bytes: int | None


REQUEST: TypeAdapter[Request | PeakRequest] = TypeAdapter(Request | PeakRequest)
