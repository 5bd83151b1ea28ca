"""The worker's side: a script imports its libraries, then calls ``serve`` with a loader.

Standard output carries messages only; what the engine prints goes to standard error.
"""

import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import IO

from pydantic import BaseModel

from outrider.bench import memory
from outrider.bench.protocol import REQUEST, Answer, Peak, Ready, Request

Generate = Callable[[Request], Answer]


def serve(load: Callable[[], tuple[dict[str, str], Generate]]) -> None:
    """Load, say so, then answer requests until the input ends.

    Args:
        load: Loads the model; returns what the worker is, and the function that generates.
    """
    out = _take_stdout()
    memory.reset_peak()
    before = memory.resident_bytes()
    start = perf_counter()
    about, generate = load()
    _send(out, Ready(ready=about, load_seconds=perf_counter() - start, rss_before_load=before))
    for line in sys.stdin:
        request = REQUEST.validate_json(line)
        answer = generate(request) if isinstance(request, Request) else _peak(before)
        _send(out, answer)


def _take_stdout() -> IO[str]:
    """Keep the pipe to the parent, and send everything else that prints to standard error."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _send(out: IO[str], message: BaseModel) -> None:
    out.write(message.model_dump_json() + "\n")
    out.flush()


def _peak(before: int | None) -> Peak:
    peak = memory.peak_bytes()
    return Peak(peak_bytes=None if peak is None or before is None else max(0, peak - before))
