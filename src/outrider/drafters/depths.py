"""How often the guesses of each depth come true, those before being right. Free of torch."""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

_PRIOR, _PRIOR_WEIGHT = 0.7, 4.0  # a share of guesses, and how many it is worth
_MEMORY = 0.98  # per guess of a depth: texts change


class Depths:
    """Running shares by depth.

    Args:
        deepest: depths that are told apart.
    """

    def __init__(self, deepest: int) -> None:
        self._right, self._seen = [0.0] * deepest, [0.0] * deepest

    def reach(self) -> list[float]:
        """Probability that a guess of each depth is kept."""
        shares = (
            (_PRIOR_WEIGHT * _PRIOR + right) / (_PRIOR_WEIGHT + seen)
            for right, seen in zip(self._right, self._seen, strict=True)
        )
        return list(accumulate(shares, mul))

    def learn(self, guesses: Sequence[int], decided: Sequence[int]) -> None:
        """Compare a chain with what was decided, up to the first wrong guess."""
        for depth, (guess, token) in enumerate(zip(guesses, decided, strict=False)):
            self._right[depth] = _MEMORY * self._right[depth] + (guess == token)
            self._seen[depth] = _MEMORY * self._seen[depth] + 1
            if guess != token:
                return
