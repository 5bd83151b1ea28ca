"""Log lines: without colours, those worth keeping, and what went wrong."""

import re
from collections.abc import Iterable, Sequence

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_COMPLAINT = re.compile(
    r"\b(WARNING|WARN|ERROR|CRITICAL|Traceback|W|E)\b|warning:|error:|fail|not (be )?(supported|used|found)|"
    r"ignor|fall(s|ing)? ?back|deprecat|missing|mismatch|preempt|out of memory|skipp",
)
_TELLING = re.compile(
    r"auxiliary layers|Detected (EAGLE|MTP|DFlash)|mask (token|embedding)|Overriding draft|Resolved architecture|"
    r"speculative implementation|extract_layers|n_extract|block_size=|Loading drafter|draft attention",
    re.IGNORECASE,
)
_SETTINGS = re.compile(r"non-default args|with config: model=|server_args=|ServerArgs\(|Namespace\(")
_FAILURE = re.compile(
    r"^(?:.*?\b(?:ERROR|CRITICAL|E)\b.*?)?(?P<said>\b[\w.]*(?:Error|Exception|GGML_ASSERT|GGML_ABORT|Fault)\b\s*[:(].*)$"
)
_SYSTEM = re.compile(
    r"CUDA error|out of memory|Segmentation fault|illegal (instruction|memory)|core dumped", re.IGNORECASE
)
KEPT, LONGEST = 120, 400


def plain(text: str) -> list[str]:
    """Return the lines without colours and carriage returns."""
    return [line.rstrip() for line in _COLOUR.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def excerpt(lines: Iterable[str], ordinary: re.Pattern[str]) -> str | None:
    """Return complaints and what was found out about the drafter; those that differ in numbers alone once.

    Settings that a server prints whole are left out, and ``ordinary`` lines, which healthy servers print too: words in
    them do not say that something went wrong.
    """
    kept: dict[str, str] = {}
    for line in lines:
        if (_COMPLAINT.search(line) or _TELLING.search(line)) and not (_SETTINGS.search(line) or ordinary.search(line)):
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
