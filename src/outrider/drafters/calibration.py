"""How often guesses come true, by the probability that the drafter gives them. Free of torch.

A drafter may be too sure of itself or too modest. Before anything is seen a probability stands for itself; what is
seen of its class then outweighs it.
"""

from bisect import bisect_right

# Upper ends of the classes, closer together near 0 and 1, where a little makes much of a difference.
EDGES = (0.01, 0.03, 0.07, 0.15, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97, 0.99)
_PRIOR_WEIGHT = 10.0  # observations that the drafter's own word is worth
_MEMORY = 0.99  # per observation of a class: texts change


class Calibration:
    """Running share of guesses that were right, for each class of probability."""

    def __init__(self) -> None:
        self._right = [0.0] * (len(EDGES) + 1)
        self._seen = [0.0] * (len(EDGES) + 1)

    def of(self, probability: float) -> float:
        """Probability of a guess, corrected by what such guesses were worth."""
        cell = bisect_right(EDGES, probability)
        return (_PRIOR_WEIGHT * probability + self._right[cell]) / (_PRIOR_WEIGHT + self._seen[cell])

    def learn(self, probability: float, *, right: bool) -> None:
        """Count a guess that was tested."""
        cell = bisect_right(EDGES, probability)
        self._right[cell] = _MEMORY * self._right[cell] + right
        self._seen[cell] = _MEMORY * self._seen[cell] + 1
