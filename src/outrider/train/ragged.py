"""Attention of one new token a row over rows of different lengths, reading no more than each row has.

Decoding many texts is bound by how many keys and values are read: a dense pass reads every row as far as the
longest. The Triton version is beside the plain one that it must equal.
Shape letters: B rows, A query heads, G key/value heads, D head size, S columns of the cache.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from outrider.models.masks import Visible

BLOCK = 64  # columns that one step of the kernel reads
_SMALLEST = 16  # rows and columns of the smallest product that tensor cores take


def can_run(device: torch.device) -> bool:
    """Whether the kernel runs there."""
    return device.type == "cuda" and find_spec("triton") is not None


class RaggedMix:
    """What ``Decoder.forward`` takes for ``mix`` when every row has one new token.

    Args:
        lengths_B: committed tokens of each row; the new one lies right behind them.
    """

    def __init__(self, lengths_B: Tensor) -> None:
        self._lengths_B = lengths_B

    def __call__(
        self, query_BA1D: Tensor, key_BGSD: Tensor, value_BGSD: Tensor, visible: Visible, sinks_A: Tensor | None
    ) -> Tensor:
        """Mix what each row's token sees."""
        assert sinks_A is None  # noqa: S101 -- no target that we load has sinks
        return mix_ragged(query_BA1D, key_BGSD, value_BGSD, self._lengths_B, window=visible.window)


def mix_plainly(
    query_BA1D: Tensor, key_BGSD: Tensor, value_BGSD: Tensor, lengths_B: Tensor, *, window: int | None
) -> Tensor:
    """The same by PyTorch, over all columns."""
    columns_S = torch.arange(key_BGSD.shape[2], device=lengths_B.device)
    distance_BS = lengths_B[:, None] - columns_S
    seen_BS = distance_BS >= 0
    if window is not None:
        seen_BS &= distance_BS < window
    return functional.scaled_dot_product_attention(
        query_BA1D, key_BGSD, value_BGSD, attn_mask=seen_BS[:, None, None], enable_gqa=True
    )


def mix_ragged(
    query_BA1D: Tensor, key_BGSD: Tensor, value_BGSD: Tensor, lengths_B: Tensor, *, window: int | None
) -> Tensor:
    """The same by the kernel: [B, A, 1, D]."""
    batch, queries, _, size = query_BA1D.shape
    keys = key_BGSD.shape[1]
    mixed_BA1D = torch.empty_like(query_BA1D, memory_format=torch.contiguous_format)
    _kernel()[(batch, keys)](
        query_BA1D,
        key_BGSD,
        value_BGSD,
        mixed_BA1D,
        lengths_B,
        query_BA1D.stride(0),
        query_BA1D.stride(1),
        key_BGSD.stride(0),
        key_BGSD.stride(1),
        key_BGSD.stride(2),
        value_BGSD.stride(0),
        value_BGSD.stride(1),
        value_BGSD.stride(2),
        size**-0.5,
        0 if window is None else window,
        QUERIES=queries // keys,
        ROWS=max(_SMALLEST, _power(queries // keys)),
        SIZE=size,
        WIDTH=max(_SMALLEST, _power(size)),
        COLUMNS=BLOCK,
        EXACT="ieee" if query_BA1D.dtype == torch.float32 else "tf32",
    )
    return mixed_BA1D


def _power(number: int) -> int:
    """The next power of two."""
    return 1 << (number - 1).bit_length()


@cache
def _kernel() -> Any:
    """Build the kernel when it is first wanted: Triton is on GPU machines alone."""
    from outrider.train.ragged_kernel import mix_ragged_kernel

    return mix_ragged_kernel
