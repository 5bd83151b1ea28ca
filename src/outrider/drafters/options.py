"""What a user may say about drafting, beside the drafter's name. Free of torch."""

from dataclasses import dataclass
from typing import Literal

from outrider.errors import UsageError

Budget = int | Literal["auto"]
MAX_BUDGET = 1023  # nodes; with the root 1024, the most that the method's authors tried


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOptions:
    """Settings of the drafters that have weights.

    Attributes:
        tokens: draft tokens a round; None lets the drafter decide by its confidence and what passes cost.
        budget: nodes of a tree, the root not counted; ``auto`` decides each round by expected tokens a second.
        spine: let a tree hold the chain of best words before any branch: insurance where the drafter is unsure of
            itself, as with quantised targets.
        sampled: at temperatures above 0, draw the tokens of a chain from the drafter's law (accepted by ratio)
            instead of taking its best ones.
        allow: keys of the drafter's config that are not understood, or contradict, and are passed over.
    """

    tokens: int | None = None
    budget: Budget = "auto"
    spine: bool = False
    sampled: bool = True
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 1:
            raise UsageError(f"Draft tokens: expected a whole number of at least 1, found {self.tokens}.")
        if self.budget != "auto" and not 1 <= self.budget <= MAX_BUDGET:
            raise UsageError(f"Budget: expected auto or a whole number from 1 to {MAX_BUDGET}, found {self.budget}.")
