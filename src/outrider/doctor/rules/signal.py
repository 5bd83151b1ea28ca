"""What a rule says of a cause: one thing seen, and how much likelier it is under that cause than under the others."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["file", "setting", "version", "words", "error", "curve", "contrast", "speed", "output", "size"]
"""Where a signal comes from. Signals of one kind repeat one another: the strongest counts whole, the others less."""


@dataclass(frozen=True)
class Signal:
    """One thing seen.

    Attributes:
        weight: log likelihood ratio, natural; below zero it speaks against.
        proof: a contradiction in files, or an error that names the cause; never a correlation.
    """

    text: str
    weight: float
    kind: Kind
    proof: bool = False
