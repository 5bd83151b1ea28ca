"""Attention of few nodes over long committed keys and over each other as a mask says.

A draft tree asks with 1 to some hundred queries a key/value head, and what takes time is reading the keys and values:
the columns are cut in pieces, one program each, and the pieces are merged by their softmax sums (the scheme of
Flash-Decoding). Lengths are read on the device, so one captured launch serves all of them. The plain version below is
what the kernels in ``tree_attention_kernel`` must equal.
Shape letters: B batch rows, N nodes, M places behind the committed columns, A query heads, G key/value heads, D head
size, S columns of a slot.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from outrider.kernels.launch import early, exact, power, processors, room, tile

MOST_PIECES = 64


class Sight(NamedTuple):
    """Who sees whom.

    Attributes:
        sees_BNM: bool, whether node i sees the j-th column behind the committed ones.
        depths_BN: of the nodes: a node stands at position committed length + depth.
        place_depths_BM: of the columns behind the committed ones.
        lengths_B: committed columns of each row, which every node sees but for the window.
    """

    sees_BNM: Tensor
    depths_BN: Tensor
    place_depths_BM: Tensor
    lengths_B: Tensor


def attention_plainly(
    query_BNAD: Tensor,
    key_BGSD: Tensor,
    value_BGSD: Tensor,
    sight: Sight,
    *,
    window: int | None = None,
    gate_BNX: Tensor | None = None,
) -> Tensor:
    """The same by PyTorch, over all columns."""
    sees_BNM, depths_BN, place_depths_BM, lengths_B = sight
    places = sees_BNM.shape[2]
    column_S = torch.arange(key_BGSD.shape[2], device=lengths_B.device)
    place_BS = column_S - lengths_B[:, None]
    at_BS = place_BS.clamp(0, places - 1)
    is_node_BS = (place_BS >= 0) & (place_BS < places)
    among_BNS = sees_BNM.gather(2, at_BS[:, None].expand(-1, sees_BNM.shape[1], -1)) & is_node_BS[:, None]
    seen_BNS = among_BNS | (place_BS < 0)[:, None]
    if window is not None:
        stands_BS = torch.where(is_node_BS, lengths_B[:, None] + place_depths_BM.gather(1, at_BS), column_S)
        distance_BNS = (lengths_B[:, None] + depths_BN)[:, :, None] - stands_BS[:, None]
        seen_BNS = seen_BNS & (distance_BNS.abs() < window)
    mixed_BAND = functional.scaled_dot_product_attention(
        query_BNAD.transpose(1, 2), key_BGSD, value_BGSD, attn_mask=seen_BNS[:, None], enable_gqa=True
    )
    mixed_BNX = mixed_BAND.transpose(1, 2).flatten(2)
    return mixed_BNX if gate_BNX is None else mixed_BNX * gate_BNX.sigmoid()


def attention(
    query_BNAD: Tensor,
    key_BGSD: Tensor,
    value_BGSD: Tensor,
    sight: Sight,
    *,
    window: int | None = None,
    gate_BNX: Tensor | None = None,
) -> Tensor:
    """Mix what each node sees: [B, N, A * D].

    Args:
        query_BNAD: contiguous.
        key_BGSD: the slots' keys, the last axis contiguous.
        value_BGSD: their values, of the same strides.
        sight: who sees whom; every node sees one column at least.
        window: a node sees columns less than so many positions away; None for all.
        gate_BNX: [B, N, A * D] or None; each number of the result is scaled by the sigmoid of its gate.
    """
    batch, nodes, heads, size = query_BNAD.shape
    groups, places = key_BGSD.shape[1], sight.sees_BNM.shape[2]
    queries = nodes * (heads // groups)
    wide = query_BNAD.dtype == torch.float32
    rows = min(32 if wide else 128, tile(queries))  # shared memory holds as much
    blocks = -(-queries // rows)
    pieces = max(1, min(MOST_PIECES, processors(query_BNAD.device) // (batch * groups * blocks)))
    mixed_BNX = query_BNAD.new_empty(batch, nodes, heads * size)
    vectors = batch * nodes * heads
    spare = room(query_BNAD.device).sums(vectors * pieces * (size + 1))
    parts, shares = spare[: vectors * pieces * size], spare[vectors * pieces * size :]
    tree_kernel, merge_kernel = _kernels()
    launched = early(query_BNAD.device)
    narrow = rows > 64 and size > 128  # noqa: PLR2004 -- what shared memory holds
    tree_kernel[(blocks, pieces, batch * groups)](
        query_BNAD,
        key_BGSD,
        value_BGSD,
        sight.sees_BNM.contiguous().view(torch.uint8),
        sight.depths_BN.contiguous(),
        sight.place_depths_BM.contiguous(),
        sight.lengths_B,
        parts,
        shares,
        nodes,
        places,
        key_BGSD.stride(0),
        key_BGSD.stride(1),
        key_BGSD.stride(2),
        size**-0.5,
        0 if window is None else window,
        HEADS=groups,
        QUERIES=heads // groups,
        SIZE=size,
        WIDTH=tile(size),
        ROWS=rows,
        COLUMNS=32 if narrow or wide else 64,
        WINDOWED=window is not None,
        EXACT=exact(query_BNAD.dtype),
        **launched,
        num_warps=8 if rows > 32 else 4,  # noqa: PLR2004 -- sums of a program in registers
        num_stages=2,
    )
    merge_kernel[(vectors,)](
        parts,
        shares,
        mixed_BNX if gate_BNX is None else gate_BNX,
        mixed_BNX,
        pieces,
        0 if gate_BNX is None else gate_BNX.stride(1),
        HEADS=heads,
        SIZE=size,
        WIDTH=tile(size),
        PIECES=power(pieces),
        GATED=gate_BNX is not None,
        **launched,
        num_warps=4,
    )
    return mixed_BNX


@cache
def _kernels() -> tuple[Any, Any]:
    """Build the kernels when they are first wanted: Triton is on GPU machines alone."""
    from outrider.kernels.tree_attention_kernel import merge_kernel, tree_attention_kernel

    return tree_attention_kernel, merge_kernel
