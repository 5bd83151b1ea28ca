"""What the lines of a trace hold: a header, then one row a round. Described by field in ``docs/trace.md``.

A change of meaning, or of a field, is another version.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from outrider.acceptance import Round
from outrider.drafters.options import DraftOptions
from outrider.engine.tracing import RoundRecord
from outrider.provenance import Provenance
from outrider.results import Record

FORMAT = "outrider-trace"
VERSION = 1


class TraceHeader(Record):
    """The first line: how the rounds came about."""

    format: Literal["outrider-trace"] = "outrider-trace"
    version: Literal[1] = 1
    model: str
    dtype: str
    drafters: list[str]
    draft_model: str | None
    draft: DraftOptions
    sampling: dict[str, Any]
    provenance: Provenance


class TraceRow(Record):
    """One round of one text. Node 0 is the anchor, the root of the tree; the lists begin with node 1."""

    drafter: str
    prompt: NonNegativeInt
    round: PositiveInt
    position: PositiveInt
    anchor: NonNegativeInt
    tokens: tuple[NonNegativeInt, ...]
    parents: tuple[NonNegativeInt, ...]
    reach: tuple[float | None, ...] | None
    target: tuple[float | None, ...]
    sampled: bool
    path: tuple[PositiveInt, ...]
    bonus: NonNegativeInt
    kept: PositiveInt
    seconds: NonNegativeFloat

    @classmethod
    def of(cls, record: RoundRecord, *, drafter: str, prompt: int) -> Self:
        """Return the row of what the engine recorded."""
        return cls(
            drafter=drafter,
            prompt=prompt,
            round=record.round,
            position=record.position,
            anchor=record.anchor,
            tokens=record.tokens,
            parents=record.parents,
            reach=None if record.reach is None else _short(record.reach),
            target=_short(record.target),
            sampled=record.sampled,
            path=record.path,
            bonus=record.bonus,
            kept=record.kept,
            seconds=round(record.seconds, 6),
        )

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        """Whoever reads a row may rely on it: each node has a parent before it, and the path is one."""
        lengths = {
            len(self.tokens),
            len(self.parents),
            len(self.target),
            len(self.tokens if self.reach is None else self.reach),
        }
        if len(lengths) > 1:
            raise ValueError("tokens, parents, target and reach differ in length")
        if any(parent >= node for node, parent in enumerate(self.parents, start=1)):
            raise ValueError("a parent stands after its child")
        steps = zip((0, *self.path), self.path, strict=False)
        if any(node > len(self.tokens) or self.parents[node - 1] != parent for parent, node in steps):
            raise ValueError("path is no path of the tree")
        return self

    @property
    def depths(self) -> list[int]:
        """Depth of each node, the root's 0 first."""
        depths = [0]
        for parent in self.parents:
            depths.append(depths[parent] + 1)
        return depths

    @property
    def counts(self) -> Round:
        """The round as acceptance counts it."""
        return Round(drafted=len(self.tokens), depth=max(self.depths), accepted=min(len(self.path), self.kept))


def _short(values: Iterable[float]) -> tuple[float | None, ...]:
    """Six digits of each; what is no number, as logits that overflowed leave behind, is null."""
    return tuple(float(f"{value:.6g}") if math.isfinite(value) else None for value in values)
