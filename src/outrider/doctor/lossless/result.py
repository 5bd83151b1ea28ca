"""What a check of losslessness returns: ``outrider doctor --lossless URL --json``."""

from typing import Literal

from pydantic import Field

from outrider.results import Record

Outcome = Literal["lossless", "near_ties_only", "differs", "not_decidable"]


class Place(Record):
    """Where a text first left the one that was expected.

    Attributes:
        position: tokens before it; characters where the server sends no tokens.
        margin: nats between the two words, in the expected text's own law; null where that is not known.
        tie: whether rounding alone explains it.
    """

    condition: str
    prompt: int
    position: int
    expected: str
    found: str
    margin: float | None
    tie: bool


class Condition(Record):
    """The same prompts asked in one way.

    Attributes:
        drift: by how much the log-probabilities of words that are alike differ, in nats; the median.
    """

    name: str
    asked: int
    equal: int
    near_ties: int
    differ: int
    drift: float | None = None


class Law(Record):
    """Words drawn at temperature 1, against the law that the server itself states.

    Attributes:
        position: of the word in the answer, from 1. The first comes from the prompt's own pass, the second of a round.
        chance: probability of counts at least so far off, were the law kept.
    """

    prompt: str
    position: int
    samples: int
    chi_square: float
    chance: float


class Lossless(Record):
    """The whole check, worst first."""

    schema_version: Literal[1] = 1
    outcome: Outcome
    summary: str
    against: Literal["reference", "itself"]
    conditions: list[Condition]
    places: list[Place] = Field(description="Every first difference; those that are no tie stand first.")
    near_tie: float = Field(description="Margin up to which a difference is a near-tie, in nats.")
    laws: list[Law]
    notes: list[str]
