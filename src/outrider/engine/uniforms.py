"""Random numbers that depend on seed, purpose and position alone.

The number that decides a token is fixed before any tree is drawn, whatever the drafter, the batch or the
device: the same seed gives the same text with and without drafts (but for near-ties of float arithmetic).
"""

import numpy as np

DECIDE, ACCEPT, RESIDUAL, DRAFT = range(4)
_WORDS_PER_STEP = 4  # Philox-4x64 yields four 64-bit words for each value of its counter.


class Uniforms:
    """Counter-based uniforms in [0, 1), one stream a purpose (Philox, Salmon et al. 2011)."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def at(self, purpose: int, position: int, count: int) -> np.ndarray:
        """Return the uniforms of ``position, position + 1, ...``, float64 [count]."""
        bits = np.random.Philox(key=self._seed, counter=[position, purpose, 0, 0])
        drawn: np.ndarray = np.random.Generator(bits).random(_WORDS_PER_STEP * count)
        return drawn[::_WORDS_PER_STEP]


def fresh_seed() -> int:
    """Return a seed from the operating system."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1)
