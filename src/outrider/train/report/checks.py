"""What a check of a run returns, and what the checks share."""

from dataclasses import dataclass
from typing import Literal

State = Literal["found", "suspected", "clear", "not examined"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that can be wrong with a run.

    Attributes:
        code: F1 and so on as in docs/training.md; a word where it has no number.
        title: what it is.
        state: found: the logs leave no other explanation, or an experiment named it; suspected: they fit it, and
            other things too; not examined: they do not hold what would tell.
        text: why, with the numbers.
    """

    code: str
    title: str
    state: State
    text: str


def listed(values: tuple[float, ...], count: int = 4) -> str:
    """Return the first of some shares for a sentence."""
    return " ".join(f"{value:.2f}" for value in values[:count])
