"""Queries, keys and values of attention made ready in one pass: norm, rotation of a part of each head, cache write.

Norms that scale by 1 + their weights come with the 1 added. The kernel is in ``head_inputs_kernel``.
Shape letters: B batch rows, N nodes, A query heads, G key/value heads, D head size, T turned part, M rows of a slot.
"""

from functools import cache
from typing import Any, NamedTuple

from torch import Tensor

from outrider.kernels.launch import early, power


class HeadShape(NamedTuple):
    """How a vector is made up: query heads, then key heads, then as many value heads; what follows is not read."""

    queries: int
    keys: int
    size: int


def head_inputs(  # noqa: PLR0917 -- what attention is made of
    vectors_BNX: Tensor,
    shape: HeadShape,
    norms: tuple[Tensor, Tensor] | None,
    angles: tuple[Tensor, Tensor],
    columns_BN: Tensor,
    cache: tuple[Tensor, Tensor],
    eps: float,
) -> Tensor:
    """Leave keys and values in the cache and return the queries, [B, N, A, D].

    Args:
        vectors_BNX: products of the projections, the last axis contiguous, rows of one distance.
        shape: what stands in them.
        norms: [D] weights of the queries' and of the keys' norm, or None.
        angles: cos and sin, [B, N, 1, T] each, sin with its first half negated.
        columns_BN: int64, where each node's keys go.
        cache: keys and values of the batch's slots, [B, G, M, D] each, of equal strides.
        eps: what the norms add to the mean square.
    """
    batch, nodes, _ = vectors_BNX.shape
    keys, values = cache
    queries = vectors_BNX.new_empty(batch, nodes, shape.queries, shape.size)
    cos, sin = (angle.contiguous() for angle in angles)
    query_norm, key_norm = norms or (cos, cos)
    _kernel()[(batch * nodes, shape.queries + 2 * shape.keys)](
        vectors_BNX,
        query_norm,
        key_norm,
        cos,
        sin,
        columns_BN.contiguous(),
        queries,
        keys,
        values,
        nodes,
        vectors_BNX.stride(1),
        keys.stride(0),
        keys.stride(1),
        keys.stride(2),
        eps,
        QUERIES=shape.queries,
        KEYS=shape.keys,
        SIZE=shape.size,
        WIDTH=power(shape.size),
        TURNED=cos.shape[-1],
        NORMED=norms is not None,
        **early(vectors_BNX.device),
        num_warps=1 if shape.size <= 128 else 2,  # noqa: PLR2004 -- four numbers a thread
    )
    return queries


@cache
def _kernel() -> Any:
    """Build the kernel when it is first wanted: Triton is on GPU machines alone."""
    from outrider.kernels.head_inputs_kernel import head_inputs_kernel

    return head_inputs_kernel
