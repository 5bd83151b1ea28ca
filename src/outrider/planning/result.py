"""What a plan says: ``outrider plan --json``."""

from typing import Literal

from outrider.planning.expected import How
from outrider.provenance import Provenance
from outrider.results import Record


class Figure(Record):
    """A number with its bounds, and where it comes from."""

    value: float
    low: float
    high: float
    how: How
    source: str


class PlanOption(Record):
    """One way to decode.

    Attributes:
        tokens_per_round: acceptance length, the bonus token counted.
        round_ms: of one round, milliseconds.
        tokens_per_second: of all sequences together.
        break_even: acceptance length below which plain decoding on the same engine is faster.
        memory_gib: weights, cache and states of all devices.
        fits: that much is there.
        risks: known defects of that version, and what else could go wrong.
        command: to type.
    """

    name: str
    engine: str
    version: str | None
    method: str
    tokens_per_round: Figure
    round_ms: Figure
    tokens_per_second: Figure
    break_even: float
    memory_gib: float
    fits: bool
    effort: Literal["minutes", "hours", "days"]
    risks: list[str]
    command: str


class Plan(Record):
    """Ways to decode, the fastest first.

    Attributes:
        scale: measured over modelled round time, where a speed was given; rounds that were not measured take so many
            times what the model says.
        left_out: methods that an engine's version does not offer.
    """

    schema_version: Literal[1] = 1
    target: str
    hardware: str
    devices: int
    context: int
    batch: int
    scale: float | None
    options: list[PlanOption]
    left_out: list[str]
    notes: list[str]
    provenance: Provenance
