"""When to stop drafting for a while: what drafted rounds brought, against what they cost. Free of torch."""

from outrider.engine.costs import Costs

_MEMORY = 0.9  # of the running mean, a round: texts change
_PATIENCE = 8  # drafted rounds before it is judged, after each pause too
_SHORTEST, _LONGEST = 8, 128  # rounds of a pause; it doubles while drafting keeps failing


class Pause:
    """Decides before each round whether a drafter that costs a pass of its own should draft."""

    def __init__(self) -> None:
        self._gain = 0.0
        self._judged = 0
        self._left = 0
        self._length = _SHORTEST

    def resting(self, costs: Costs, rows: int) -> bool:
        """Say whether a round of so many rows goes without drafts; also while a plain one's cost is not known."""
        if not costs.knows(rows):
            return True
        self._left = max(self._left - 1, -1)
        return self._left >= 0

    def learn(self, gain: float) -> None:
        """Judge a drafted round by its tokens a running row, less its cost in plain rounds."""
        self._judged += 1
        self._gain += (gain - self._gain) * max(1 - _MEMORY, 1 / self._judged)
        if self._judged < _PATIENCE:
            return
        if self._gain > 0:
            self._length = _SHORTEST
        else:
            self._left, self._length = self._length, min(2 * self._length, _LONGEST)
            self._judged, self._gain = 0, 0.0
