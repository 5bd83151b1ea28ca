"""Which token stands in the masked slots. Free of torch.

Shape letter: V words of the target.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.errors import UsageError

SMALL = 0.1  # of the median length of an embedding


@dataclass(frozen=True, slots=True)
class Words:
    """What is known of a target's words, by token id.

    Attributes:
        counts_V: how often the data has each.
        norms_V: length of each embedding.
        stop_ids: tokens that end texts.
    """

    counts_V: NDArray[np.int64]
    norms_V: NDArray[np.float64]
    stop_ids: frozenset[int]

    def mask_token(self) -> int:
        """Return a token for the masked slots: one that no text has, and whose embedding is no near-nothing.

        Raises:
            UsageError: there is none.
        """
        usable_V = (self.counts_V == 0) & (self.norms_V >= SMALL * np.median(self.norms_V))
        usable_V[list(self.stop_ids)] = False
        if not usable_V.any():
            raise UsageError("Every usable token occurs in the data; say which one stands in masked slots.")
        return int(usable_V.argmax())

    def trouble(self, token: int) -> str | None:
        """Return what speaks against a mask token, if anything does."""
        if not 0 <= token < len(self.counts_V):
            return f"it lies outside the vocabulary of {len(self.counts_V)}"
        if token in self.stop_ids:
            return "it ends texts"
        if self.norms_V[token] < SMALL * np.median(self.norms_V):
            return "its embedding is next to nothing, so masked slots would carry no sign of their own"
        return None
