"""A training run as its logs tell it, whoever wrote them. Knows no file.

Three things may be measured, and mixing them up hides faults: the network in training on its own blocks, the same one
on held-out texts, and rounds of an engine that loaded it.
Lists over slots begin with slot 1, the first after the anchor.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Slots = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was logged of training at one step.

    Attributes:
        tokens: response tokens seen so far.
        loss: mean over the steps since the line before, or of this step.
        accuracy: share of right words, all slots together.
        slots: the same, slot by slot.
        length: 1 + mean run of right words from slot 1 on, on training blocks.
        phases: anchors by their distance from the start of the response, modulo the block.
        starved: share of the documents long enough for a block that got no anchor.
    """

    step: int
    tokens: float | None = None
    epoch: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    slots: Slots = ()
    length: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    phases: Slots = ()
    starved: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was measured on texts that training does not see.

    Attributes:
        tokens: response tokens that training had seen.
        tau, low, high: acceptance length by decoding in an engine, and its interval.
        rates: u_k of those rounds.
        loss, accuracy, slots, length: of the network in training, its masks and labels.
        probes: loss and accuracy of the same held-out text under lessons that differ in one thing, by name;
            ``as_trained`` and ``served`` are among them.
        prompts: that were decoded.
    """

    step: int
    tokens: float | None = None
    tau: float | None = None
    low: float | None = None
    high: float | None = None
    rates: Slots = ()
    loss: float | None = None
    accuracy: float | None = None
    slots: Slots = ()
    length: float | None = None
    probes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prompts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a run beside its curves; None is not known.

    Attributes:
        format: whose logs they are.
        loss: decay (cross-entropy, slots weighed), d-pace or distilled.
        epoch_tokens: response tokens of one pass over the data.
        planned_steps: where the schedule ends.
    """

    format: str
    target: str | None = None
    block_size: int | None = None
    vocab_size: int | None = None
    loss: str | None = None
    epoch_tokens: float | None = None
    planned_steps: int | None = None


@dataclass(frozen=True)
class Run:
    """One run: lines in order of their steps.

    Attributes:
        sources: files it was read from.
        understood: what was taken for what, in sentences.
    """

    steps: tuple[Step, ...]
    evaluations: tuple[Evaluation, ...]
    facts: Facts
    sources: tuple[str, ...] = ()
    understood: tuple[str, ...] = field(default=())

    @cached_property
    def counts_tokens(self) -> bool:
        """Whether every line says how many tokens had been seen; else steps are counted."""
        lines: list[Step | Evaluation] = [*self.steps, *self.evaluations]
        return bool(lines) and all(line.tokens is not None for line in lines)

    @property
    def unit(self) -> str:
        """Of ``seen``."""
        return "tokens" if self.counts_tokens else "steps"

    def seen(self, line: Step | Evaluation) -> float:
        """Return how much of the data a line comes after, in tokens where all lines say it, else in steps."""
        return float(line.tokens if self.counts_tokens and line.tokens is not None else line.step)

    @cached_property
    def end(self) -> float:
        """How much was seen in all."""
        lines: list[Step | Evaluation] = [*self.steps, *self.evaluations]
        return max(map(self.seen, lines), default=0.0)

    @property
    def decoded(self) -> tuple[Evaluation, ...]:
        """Evaluations with an acceptance length from an engine."""
        return tuple(line for line in self.evaluations if line.tau is not None)


def finite(value: float | None) -> float | None:
    """Return a number; None for one that is not finite."""
    return value if value is not None and math.isfinite(value) else None


def mean(values: Sequence[float]) -> float:
    """Return the mean; of nothing there is none."""
    return sum(values) / len(values)


def slot_means(lines: Sequence[Slots]) -> Slots:
    """Return the mean of each slot over lines; of as many slots as all lines have."""
    return tuple(mean(values) for values in zip(*lines, strict=False))
