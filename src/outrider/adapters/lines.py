"""Log lines: without colours, those worth keeping, and what went wrong."""

import re
from collections.abc import Iterable, Sequence

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TELLING = re.compile(
    r"warn|error|exception|specul|draft|dflash|eagle|mtp|ngram|accept|auxiliary|mask|sliding|causal|prefix.?cach|"
    r"cuda graph|attention backend|preempt|out of memory|kv cache|ignor|fall(s|ing)? back|not supported|deprecat|"
    r"sharing|resolved architecture",
    re.IGNORECASE,
)
_PERIODIC = re.compile(r"SpecDecoding metrics|throughput|Decode batch|Prefill batch|draft acceptance|statistics draft")
_FAILURE = re.compile(
    r"^(?:.*?\b(?:ERROR|CRITICAL|E)\b.*?)?(?P<said>\b[\w.]*(?:Error|Exception|GGML_ASSERT|GGML_ABORT|Fault)\b\s*[:(].*)$"
)
_SYSTEM = re.compile(r"CUDA error|out of memory|Segmentation fault|illegal (instruction|memory)|core dumped", re.I)
KEPT, LONGEST = 120, 400


def plain(text: str) -> list[str]:
    """Return the lines without colours and carriage returns."""
    return [line.rstrip() for line in _COLOUR.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def excerpt(lines: Iterable[str]) -> str | None:
    """Return the lines that tell something, repeated ones once; numbers and times do not make a line another."""
    kept: dict[str, str] = {}
    for line in lines:
        if _TELLING.search(line) and not _PERIODIC.search(line):
            kept.setdefault(re.sub(r"\d+", "0", line), line[:LONGEST])
            if len(kept) >= KEPT:
                break
    return "\n".join(kept.values()) or None


def failure(lines: Sequence[str]) -> str | None:
    """Return the last thing that went wrong, as a traceback or the system says it."""
    for line in reversed(lines):
        if found := _FAILURE.match(line):
            return found["said"][:LONGEST]
        if _SYSTEM.search(line):
            return line[-LONGEST:]
    return None


def numbers(text: str) -> list[float]:
    """Return a comma-separated list; nan, and what follows a broken one, is left out."""
    found = []
    for word in text.split(","):
        try:
            value = float(word)
        except ValueError:
            break
        if not 0 <= value <= 1:
            break
        found.append(value)
    return found
