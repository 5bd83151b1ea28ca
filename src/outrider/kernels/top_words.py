"""The best words of rows of logits over a large vocabulary, and the log of each row's softmax sum, in two launches.

The library sorts or selects from whole rows, which takes as long as a part of the pass. The plain version below is what
the kernels in ``top_words_kernel`` must equal; of equally good words the first comes first.
Shape letters: R rows, V words, K best words.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from outrider.kernels.launch import early, power

STRETCH = 4096  # words that one program reads


class Top(NamedTuple):
    """Best words of each row.

    Attributes:
        values_RK: logits, float32, best first.
        words_RK: int64.
        total_R: log of the sum of exp over all words.
    """

    values_RK: Tensor
    words_RK: Tensor
    total_R: Tensor


def top_words_plainly(logits_RV: Tensor, count: int) -> Top:
    """The same by PyTorch."""
    exact = logits_RV.float()
    words_RK = exact.sort(dim=-1, descending=True, stable=True).indices[:, :count]
    return Top(exact.gather(1, words_RK), words_RK, exact.logsumexp(-1))


def top_words(logits_RV: Tensor, count: int) -> Top:
    """Choose ``count`` words of each row.

    Args:
        logits_RV: any float type, the last axis contiguous.
        count: at most V.
    """
    rows, size = logits_RV.shape
    stretches = -(-size // STRETCH)
    made = logits_RV.new_empty(rows, stretches, 2 + count, dtype=torch.float32)
    values, largest, sums = (
        made.flatten()[start : start + rows * stretches * width]
        for start, width in ((0, count), (rows * stretches * count, 1), (rows * stretches * (count + 1), 1))
    )
    words = logits_RV.new_empty(rows, stretches, count, dtype=torch.int32)
    top = Top(
        logits_RV.new_empty(rows, count, dtype=torch.float32),
        logits_RV.new_empty(rows, count, dtype=torch.int64),
        logits_RV.new_empty(rows, dtype=torch.float32),
    )
    stretch_kernel, merge_kernel = _kernels()
    launched = early(logits_RV.device)
    stretch_kernel[(rows, stretches)](
        logits_RV,
        values,
        words,
        largest,
        sums,
        size,
        logits_RV.stride(0),
        COUNT=count,
        STRETCH=STRETCH,
        **launched,
        num_warps=8,
    )
    merge_kernel[(rows,)](
        values,
        words,
        largest,
        sums,
        *top,
        stretches,
        COUNT=count,
        WIDTH=power(stretches * count),
        STRETCHES=power(stretches),
        **launched,
        num_warps=4,
    )
    return top


@cache
def _kernels() -> tuple[Any, Any]:
    """Build the kernels when they are first wanted: Triton is on GPU machines alone."""
    from outrider.kernels.top_words_kernel import merge_kernel, stretch_kernel

    return stretch_kernel, merge_kernel
