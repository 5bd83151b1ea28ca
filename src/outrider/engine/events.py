"""What the engine tells: one event a token. Free of torch."""

from dataclasses import dataclass
from typing import Literal

from outrider.engine.sequence import FinishReason

Origin = Literal["draft", "target"]


@dataclass(frozen=True, slots=True)
class Logprob:
    """Natural logarithms of the target's own law (before bias, penalties and temperature).

    Attributes:
        chosen: of the token that was taken.
        top: the most probable tokens and theirs, as many as were asked for.
    """

    chosen: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A token was added to a sequence.

    Attributes:
        origin: whether it was accepted from a draft or decided by the target.
        depth: of an accepted token in its draft tree, from 1; 0 where the target decided.
        finish_reason: set on the last token.
    """

    sequence_id: int
    token: int
    origin: Origin
    depth: int
    logprob: Logprob | None
    finish_reason: FinishReason | None
