"""How often a look-up guess is right: by the length of the match behind it, and by how many places agree.

Every token that is decided teaches, drafted or not: what the index would have guessed is compared with it. So a
drafter that has stopped drafting notices when the text turns predictable.
"""

from bisect import bisect_right

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # lower ends of the classes of match length
SHARES = (0.0, 0.3, 0.55, 0.8, 0.97)  # lower ends of the classes of agreement
# Before anything is seen: share of right guesses by class of length, where all places agree.
PRIOR = (0.25, 0.45, 0.6, 0.7, 0.76, 0.8, 0.85, 0.9, 0.94)
_PRIOR_WEIGHT = 6.0  # observations the prior is worth
_MEMORY = 0.97  # per observation of a class: texts change


class Confidence:
    """Running share of right guesses for each class of match length and agreement."""

    def __init__(self) -> None:
        self._right = [[_prior(rate, share) * _PRIOR_WEIGHT for share in SHARES] for rate in PRIOR]
        self._seen = [[_PRIOR_WEIGHT] * len(SHARES) for _ in PRIOR]

    def of(self, length: int, share: float) -> float:
        """Probability that a guess is right.

        Args:
            length: of the longest match behind it.
            share: weight of the places behind it among all places that match.
        """
        row, column = _cell(length, share)
        return self._right[row][column] / self._seen[row][column]

    def learn(self, length: int, share: float, *, right: bool) -> None:
        """Count a guess."""
        row, column = _cell(length, share)
        self._right[row][column] = _MEMORY * self._right[row][column] + right
        self._seen[row][column] = _MEMORY * self._seen[row][column] + 1


def _cell(length: int, share: float) -> tuple[int, int]:
    return bisect_right(LENGTHS, length) - 1, bisect_right(SHARES, share) - 1


def _prior(rate: float, share: float) -> float:
    return rate * (0.3 + 0.7 * share)
