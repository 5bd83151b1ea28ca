"""Where a text begins to loop: the same run of words, again and again. Knows ids alone."""

import numpy as np
import numpy.typing as npt

RUN = 8  # words of a run that counts as the same
_ODD = 0x9E3779B97F4A7C15  # of the hash of a run; 64 bits, so that different runs do not meet


def loop_start(tokens: npt.NDArray[np.int32], most: int) -> int | None:
    """Return how many tokens stand before a run comes for more than the ``most``-th time; None if none does.

    What is kept ends right before the last word of that run.
    """
    if len(tokens) < RUN + most:
        return None
    powers = np.array([pow(_ODD, power, 1 << 64) for power in range(1, RUN + 1)], dtype=np.uint64)
    words = (tokens.astype(np.uint64) + 1) * np.uint64(0xD1342543DE82EF95)  # spread over all bits
    runs = np.lib.stride_tricks.sliding_window_view(words ^ (words >> np.uint64(29)), RUN) @ powers
    order = np.argsort(runs, kind="stable")
    ordered = runs[order]
    too_often = ordered[most:] == ordered[:-most]  # sorted, a run and the one `most` places on are the same
    if not too_often.any():
        return None
    return int(order[most:][too_often].min()) + RUN - 1
