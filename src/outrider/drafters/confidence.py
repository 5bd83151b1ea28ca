"""How often a look-up guess is right, by the length of the match that suggests it; learnt while decoding.

Every token that is decided teaches, drafted or not: what the index would have guessed is compared with it. So a
drafter that has stopped drafting notices when the text turns predictable.
"""

from bisect import bisect_right

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # lower ends of the classes of match length
RANKS = 3  # the guess of the best match, the next different guess, and so on
# Before anything is seen: share of right guesses by class, first guess; later guesses get the rest in halves.
PRIOR = (0.12, 0.28, 0.42, 0.52, 0.62, 0.70, 0.80, 0.86, 0.94)
_PRIOR_WEIGHT = 6.0  # observations the prior is worth
_MEMORY = 0.97  # per observation of a class: texts change


class Confidence:
    """Running share of right guesses for each class of match length and rank."""

    def __init__(self) -> None:
        self._right = [[_prior(index, rank) * _PRIOR_WEIGHT for rank in range(RANKS)] for index in range(len(LENGTHS))]
        self._seen = [[_PRIOR_WEIGHT] * RANKS for _ in LENGTHS]

    def of(self, length: int, rank: int) -> float:
        """Probability that the guess of this rank, from a match of this length, is right."""
        index = bisect_right(LENGTHS, length) - 1
        return self._right[index][rank] / self._seen[index][rank]

    def learn(self, length: int, rank: int, *, right: bool) -> None:
        """Count a guess."""
        index = bisect_right(LENGTHS, length) - 1
        self._right[index][rank] = _MEMORY * self._right[index][rank] + right
        self._seen[index][rank] = _MEMORY * self._seen[index][rank] + 1


def _prior(index: int, rank: int) -> float:
    return PRIOR[index] if rank == 0 else (1 - PRIOR[index]) * 0.25**rank
