"""Defects known by engine version: data in the TOML files beside this one, matched with version arithmetic.

A defect in range is no diagnosis: it counts with what it would need (keys in files), and with what it would show
(the shape of the numbers, words). Forks and dates stand for a version only weakly.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

from outrider.doctor.known.shapes import SHAPES, Shape
from outrider.doctor.known.versions import Known, known_version
from outrider.doctor.observation import Observation
from outrider.doctor.rules.signal import Signal
from outrider.doctor.verdict import Cause

IN_RANGE = 0.4
KEYS = 0.5
SHAPE = 0.9
WORDS = 1.1
"""Weights of what a defect has in common with an observation; the sum stays below that of a clear contrast."""
_PLACES = ("error", "log", "notes", "traffic", "series", "settings", "names", "training")


class Defect(BaseModel):
    """One known defect.

    Attributes:
        methods: Empty for all.
        versions: A specifier; empty for all that were checked.
        hybrid: Only on targets with recurrent layers.
        drafter_with, drafter_without, target_with: Config keys: any of these, none of these.
        signature: Words that reports of it use, a pattern.
        shape: What the numbers do, by the names of ``SHAPES``; any of them.
        named_only: Counts only where its signature or its keys are there: numbers alone do not tell it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str
    cause: Cause
    methods: tuple[str, ...]
    versions: str
    hybrid: bool = False
    drafter_with: tuple[str, ...] = ()
    drafter_without: tuple[str, ...] = ()
    target_with: tuple[str, ...] = ()
    signature: str
    shape: tuple[Shape, ...] = ()
    named_only: bool = False
    effect: str
    fix: str
    reference: str

    @model_validator(mode="after")
    def _can_be_told(self) -> Self:
        if not self.shape and not self.named_only:
            raise ValueError(f"Defect {self.id}: expected a shape, or named_only = true; found neither.")
        return self

    def possible(self, o: Observation, version: Known) -> bool:
        """Method, target, version and keys do not speak against it."""
        method, drafter = o.evidence.method, o.facts.drafter
        if self.methods and method is not None and method not in self.methods:
            return False
        if (self.hybrid and o.facts.hybrid is False) or not version.within(self.versions):
            return False
        if any(key in drafter for key in self.drafter_without):
            return False
        return not (drafter and self.drafter_with) or any(key in drafter for key in self.drafter_with)

    def has_keys(self, o: Observation) -> bool:
        """A key that it needs stands in the files."""
        return any(k in o.facts.drafter for k in self.drafter_with) or any(
            k in o.facts.target for k in self.target_with
        )

    def told_by_files(self, o: Observation) -> bool:
        """The files alone say that it can strike: by a key, or by the target's recurrent layers."""
        return self.has_keys(o) or (self.hybrid and o.facts.hybrid is True)

    def weight(self, o: Observation, version: Known) -> float:
        """How much it has in common with what is seen; 0 for a defect that is merely in range."""
        keys = self.has_keys(o)
        words = o.words.has(self.signature, *_PLACES)
        shape = any(SHAPES[name](o) for name in self.shape)
        if self.shape and not shape and o.reading.measured and not (words or keys):
            return 0.0
        if (self.named_only or not self.versions) and not (words or keys):
            return 0.0  # numbers alone tell it, or a defect in no range, from nothing
        common = KEYS * keys + WORDS * words + SHAPE * shape
        return version.trust * (IN_RANGE + common) if common else 0.0


class Book(BaseModel):
    """The defects of one engine."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    engine: str
    releases: Mapping[str, str] = {}
    defect: tuple[Defect, ...]


@cache
def books() -> tuple[Book, ...]:
    """All files of this folder."""
    folder = files(__package__)
    texts = [f.read_text("utf-8") for f in sorted(folder.iterdir(), key=lambda f: f.name) if f.name.endswith(".toml")]
    return TypeAdapter(tuple[Book, ...]).validate_python([tomllib.loads(text) for text in texts])


def concerning(o: Observation) -> list[Defect]:
    """Defects of this engine's very version that the files speak of: their keys are there, or the recurrent layers.

    What nothing was measured of is not weighed; this is what a deployment should be warned of before it starts.
    """
    version = known_version(o.evidence.engine, {})
    if version.version is None:
        return []
    return [
        defect
        for book in books() if book.engine == o.evidence.engine.name
        for defect in book.defect
        if defect.versions and defect.methods and defect.possible(o, version) and defect.told_by_files(o)
    ]  # fmt: skip


def matching(o: Observation) -> list[tuple[Defect, float]]:
    """Defects of this engine and version that have something in common with what is seen, the weightiest first."""
    releases = {
        day: version for b in books() if b.engine == o.evidence.engine.name for day, version in b.releases.items()
    }
    version = known_version(o.evidence.engine, releases)
    found = [
        (defect, defect.weight(o, version))
        for book in books() if book.engine in (o.evidence.engine.name, "trainer")
        for defect in book.defect if defect.possible(o, version)
    ]  # fmt: skip
    return sorted(((d, w) for d, w in found if w > 0), key=lambda pair: -pair[1])


def known_defects(o: Observation) -> dict[Cause, list[Signal]]:
    """Signals by cause."""
    found: dict[Cause, list[Signal]] = {}
    for defect, weight in matching(o):
        fork = " (a fork: its base is not known)" if o.evidence.engine.fork else ""
        text = f"known defect {defect.id}{fork}: {defect.effect}; fixed: {defect.fix} ({defect.reference})"
        found.setdefault(defect.cause, []).append(Signal(text, weight, "version"))
    return found
