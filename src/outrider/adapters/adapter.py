"""What is asked of an adapter: one engine's numbers, log lines, answers and options, each as evidence."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from outrider.adapters.counts import Counts
from outrider.adapters.launch import Launch
from outrider.adapters.metrics import Samples

Part = dict[str, Any]
"""A part of an evidence file: keys and nesting are its own."""


@dataclass(frozen=True, slots=True)
class Logged:
    """What a log says.

    Attributes:
        part: evidence.
        unread: lines that look like measurements and could not be read.
    """

    part: Part
    unread: int = 0


class Adapter(Protocol):
    """One engine.

    Attributes:
        name: by the evidence file.
        prefix: of its metrics' names.
        programs: what its launch commands hold.
        marks: what its logs hold.
        pages: addresses that answer JSON, as far as versions have them.
    """

    name: ClassVar[str]
    prefix: ClassVar[str]
    programs: ClassVar[re.Pattern[str]]
    marks: ClassVar[re.Pattern[str]]
    pages: ClassVar[tuple[str, ...]]

    def counts(self, samples: Samples) -> Counts:
        """Return what ``/metrics`` says."""
        ...

    def facts(self, pages: Mapping[str, Any]) -> Part:
        """Return what the pages say, by address; those that did not answer are not there."""
        ...

    def command(self, launch: Launch) -> Part:
        """Return what a launch command says."""
        ...

    def log(self, lines: Sequence[str]) -> Logged:
        """Return what a log says; lines come without colours."""
        ...


def compact(part: Mapping[str, Any]) -> Part:
    """Return a part without what is not known: None and empty containers, at any depth."""
    found = {key: compact(value) if isinstance(value, Mapping) else value for key, value in part.items()}
    return {key: value for key, value in found.items() if value is not None and value not in ({}, [], (), "")}
