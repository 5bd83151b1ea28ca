"""Parts of evidence laid over each other: the earlier source stands, what contradicts it is told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isclose
from typing import Any

from outrider.adapters import Part

JOINED = ("error", "log", "notes")  # texts of several sources are all kept
MEASURED = "counters"  # numbers of one measurement belong together
FREE = ("config", "tensors", "settings", "sampling")  # keys of the engine's own: unlike spellings are no contradiction
SAME = 0.01  # relative


@dataclass
class Merged:
    """What is known so far.

    Attributes:
        part: evidence.
        warnings: contradictions between sources.
        sources: what was read, in order.
    """

    part: Part = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    def add(self, source: str, part: Part) -> None:
        """Lay a part under what is known."""
        self.sources.append(source)
        if self.part.get(MEASURED) and part.get(MEASURED):
            part = {key: value for key, value in part.items() if key != MEASURED}
        self.warnings += [f"{source}: {told}; the earlier is kept." for told in _differences(self.part, part)]
        self.part = _under(self.part, part)


def _under(known: Mapping[str, Any], part: Mapping[str, Any]) -> Part:
    found = dict(known)
    for key, value in part.items():
        if isinstance(value, Mapping) and isinstance(found.get(key), Mapping):
            found[key] = _under(found[key], value)
        elif key in JOINED and found.get(key) and value and value != found[key]:
            found[key] = f"{found[key]}\n{value}"
        elif found.get(key) is None:
            found[key] = value
    return found


def _differences(known: Mapping[str, Any], part: Mapping[str, Any], where: str = "") -> Iterator[str]:
    for key, value in part.items():
        before = known.get(key)
        if before is None or value is None or key in (*JOINED, *FREE):
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            yield from _differences(before, value, f"{where}{key}.")
        elif not _same(before, value, key):
            yield f"{where}{key} is {value!r} here and {before!r} elsewhere"


def _same(first: Any, second: Any, key: str) -> bool:
    if isinstance(first, int | float) and isinstance(second, int | float):
        return isclose(first, second, rel_tol=SAME)
    a, b = str(first), str(second)
    if key == "name":  # a folder, and the name on the hub
        return a.rstrip("/").rpartition("/")[2] == b.rstrip("/").rpartition("/")[2]
    return a == b or key == "version"  # engines print a version in several ways
