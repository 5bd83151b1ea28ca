"""A running server: who it is, and its counters twice. Read only, unless it is asked for a few texts."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from outrider.adapters import ADAPTERS, Adapter, Counts, Part, adapter_of_metrics
from outrider.adapters.metrics import Samples, read_metrics
from outrider.doctor.lossless.server import Server
from outrider.doctor.web import RefusedError, base, get_json, get_text
from outrider.errors import UsageError

SECONDS = 5.0  # of patience for a page
BETWEEN = 5.0  # two looks at the counters
ENOUGH_ROUNDS = 30  # in between, else everything since the start counts
MAX_TOKENS = 96
PROBES = (
    "The three states of matter are", "def fibonacci(n):", "Once upon a time, in a small village by the sea,",
    "To make bread you need flour, water and", "The planets of the solar system, in order, are",
    "Dear Sir or Madam, I am writing to ask", "Q: What is 17 + 25?\nA:", "The history of the bicycle begins with",
)  # fmt: skip


@dataclass
class Looked:
    """What a server says.

    Attributes:
        part: evidence.
        warnings: what it did not say.
    """

    part: Part = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def look(url: str, *, probe: bool, sleep: Callable[[float], None] = time.sleep) -> Looked:
    """Read a server.

    Raises:
        UsageError: it is not there, hangs, or is no engine that is known.
    """
    url, looked = base(url), Looked()
    first = _metrics(url, looked)
    adapter = adapter_of_metrics(first) if first is not None else None
    pages: dict[str, Any] = {}
    if adapter is None:
        adapter, pages = _recognised(url)
    if adapter is None:
        raise UsageError(f"{url} answers, but like no known engine ({', '.join(ADAPTERS)}). Is it one of them?")
    pages |= _pages(url, adapter, pages)
    started = time.monotonic()
    if probe:
        looked.warnings += _probe(url)
    elif first is not None:
        sleep(BETWEEN)
    seconds = time.monotonic() - started
    part = adapter.facts(pages)
    looked.part = part | {"engine": {"name": adapter.name} | part.get("engine", {})}
    _count(looked, adapter, (first, _metrics(url, looked) if first is not None else None), seconds, probe=probe)
    return looked


def _metrics(url: str, looked: Looked) -> Samples | None:
    prefixes = tuple(adapter.prefix for adapter in ADAPTERS.values())
    try:
        samples = read_metrics(get_text(f"{url}/metrics", seconds=SECONDS), lambda line: line.startswith(prefixes))
    except RefusedError as error:
        _tell(looked, f"{error} Start the server with its metrics on (SGLang: --enable-metrics, llama.cpp: --metrics).")
        return None
    except UsageError as error:
        _tell(looked, str(error))
        return None
    if samples.broken:
        _tell(looked, f"{url}/metrics: {samples.broken} lines could not be read and were left out.")
    return samples


def _tell(looked: Looked, warning: str) -> None:
    if warning not in looked.warnings:
        looked.warnings.append(warning)


def _recognised(url: str) -> tuple[Adapter | None, dict[str, Any]]:
    """Tell an engine by pages that it alone has.

    Raises:
        UsageError: nothing answers.
    """
    models = _page(url, "/v1/models", must=True)
    owners = str(models).lower()
    for own, engine in (("/props", "llama.cpp"), ("/server_info", "sglang"), ("/get_server_info", "sglang")):
        if (page := _page(url, own)) is not None and "vllm_config" not in str(page):
            return ADAPTERS[engine], {own: page, "/v1/models": models}
    if "vllm" in owners or _page(url, "/version") is not None:
        return ADAPTERS["vllm"], {"/v1/models": models}
    return None, {}


def _page(url: str, address: str, *, must: bool = False) -> Any:
    try:
        return get_json(url + address, seconds=SECONDS)
    except RefusedError:
        return None
    except UsageError:
        if must:
            raise
        return None


def _pages(url: str, adapter: Adapter, known: dict[str, Any]) -> dict[str, Any]:
    found = {address: _page(url, address) for address in adapter.pages if address not in known}
    return {address: page for address, page in found.items() if page is not None}


def _probe(url: str) -> list[str]:
    try:
        server = Server(url, seconds=60)
        for prompt in PROBES:
            server.ask(prompt, max_tokens=MAX_TOKENS, tops=0)
    except UsageError as error:
        return [f"The probe was broken off: {error}"]
    return []


def _count(
    looked: Looked, adapter: Adapter, samples: tuple[Samples | None, Samples | None], seconds: float, *, probe: bool
) -> None:
    """Add counters: of the time between the looks where enough happened, else since the server's start."""
    before, after = (adapter.counts(one) if one is not None else None for one in samples)
    now = after or before
    if now is None:
        return
    between = now.since(before) if after is not None and before is not None else None
    if after is not None and before is not None and between is None:
        _tell(looked, "Its counters fell between two looks: the server was restarted. What it counted since counts.")
    if between is not None and (between.rounds or 0) >= ENOUGH_ROUNDS:
        part = between.part(seconds=seconds)
    else:
        _since_start(looked, now, probe=probe)
        part = now.part()
    measured = looked.part.get("counters", {})
    looked.part["counters"] = {key: value for key, value in part.items() if value not in (None, [])} | measured
    looked.part["traffic"] = _traffic(now, probe=probe)
    if now.model and not looked.part.get("target", {}).get("name"):
        looked.part["target"] = {"name": now.model}


def _since_start(looked: Looked, now: Counts, *, probe: bool) -> None:
    if now.rounds or now.length:
        if not probe:
            _tell(looked, "Next to nothing ran between two looks; the numbers are those since the server's start.")
        return
    what = "is there a draft model?" if now.generated else "it has written nothing yet; --probe asks it for texts."
    _tell(looked, f"The server has counted no round of speculation: {what}")


def _traffic(now: Counts, *, probe: bool) -> Part:
    if probe:
        return {"concurrency": 1, "temperature": 0, "output_tokens": MAX_TOKENS, "workload": "short prompts of a probe"}
    return {"concurrency": now.running} if now.running else {}
