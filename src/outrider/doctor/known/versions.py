"""Versions as engines print them: releases, builds between releases, llama.cpp build numbers, dates, forks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from outrider.doctor.evidence import EngineFacts

_RELEASE = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?(?:\.?(?:rc|a|b|post|dev)\d*)*)", re.IGNORECASE)
_BUILD = re.compile(r"\bb(\d{4,6})\b")
_DATE = re.compile(r"\b(20\d\d-\d\d)(-\d\d)?\b")
EXACT, DATED, FORKED, UNKNOWN = 1.0, 0.7, 0.6, 0.5


@dataclass(frozen=True)
class Known:
    """A version and how far it can be trusted: a date stands for the newest release of that day, a fork for its base.

    Attributes:
        version: None when nothing can be read from what was said.
        trust: 1 for a release, less for the rest.
    """

    version: Version | None
    trust: float

    def within(self, specifier: str) -> bool:
        """The version satisfies the specifier; one that is not known might."""
        if not specifier or self.version is None:
            return True
        return SpecifierSet(specifier, prereleases=True).contains(self.version)


def known_version(engine: EngineFacts, releases: Mapping[str, str]) -> Known:
    """Read a version from what was said; ``releases`` maps dates to the newest release of the day."""
    said = engine.version or ""
    trust = FORKED if engine.fork else EXACT
    if build := _BUILD.search(said):
        return Known(Version(build.group(1)), trust)
    if (
        engine.name in ("vllm", "sglang")
        and (release := _RELEASE.search(said))
        and (version := _parsed(release.group(1)))
    ):
        return Known(version, trust)
    if date := _DATE.search(said):
        day = date.group(0) if date.group(2) else date.group(1) + "-31"
        newest = max((d for d in releases if d <= day), default=None)
        if newest is not None:
            return Known(Version(releases[newest]), min(trust, DATED))
    return Known(None, UNKNOWN)


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
