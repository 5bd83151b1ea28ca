"""What a measurement of rounds returns: versioned, with its provenance."""

from pydantic import Field

from outrider.provenance import Provenance
from outrider.results import Record


class KernelTime(Record):
    """One kernel in a profile, a round's share of it."""

    name: str
    calls: float = Field(description="Launches a round.")
    microseconds: float = Field(description="Of a round.")


class RoundTime(Record):
    """One way of drafting at one context and batch.

    Times are from one round's start to the next one's, the host reading each round's tokens one round late.
    """

    method: str
    nodes: int = Field(description="That the target runs a round and row, the root counted.")
    context: int
    batch: int
    dtype: str
    rounds: int = Field(description="That were timed.")
    milliseconds: float = Field(description="Median of a round.")
    fastest: float
    slowest: float
    tokens_a_round: float = Field(description="Of a row, with random weights: says nothing about a trained drafter.")
    bytes: dict[str, float] = Field(description="That a round must move at least, by what they are.")
    floor_milliseconds: float = Field(description="Of those bytes at the measured rate of copies.")
    tokens_per_second: dict[str, float] = Field(
        description="If a round brought so many tokens a row (acceptance length, the bonus token counted)."
    )
    profile: list[KernelTime] = Field(default_factory=list)


class PaceResult(Record):
    """Measurements of one model's rounds on one device."""

    version: int = 1
    shapes: str
    device: str
    copy_terabytes_per_second: float = Field(description="Bytes read and written by device copies.")
    rounds: list[RoundTime]
    provenance: Provenance
