"""The Triton kernel of ``head_inputs``: one program a node and head. Only ``head_inputs`` imports it."""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin


@triton.jit
def head_inputs_kernel(
    source,
    query_norm,
    key_norm,
    cos,
    sin,
    columns,
    queries,
    keys,
    values,
    nodes,
    source_row,
    cache_slot,
    cache_head,
    cache_row,
    eps,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    TURNED: tl.constexpr,
    NORMED: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Norm and turn a head of a node; a query goes to its place, a key and a value to the cache."""
    begin(EARLY)
    vector = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    place = tl.arange(0, WIDTH)
    real = place < SIZE
    start = source + vector * source_row + head * SIZE
    result = tl.load(start + place, mask=real, other=0.0).to(tl.float32)
    if head < QUERIES + KEYS:
        partner = tl.where(place < TURNED // 2, place + TURNED // 2, place - TURNED // 2)
        turned = place < TURNED
        other = tl.load(start + partner, mask=turned, other=0.0).to(tl.float32)
        if NORMED:
            scale = tl.rsqrt(tl.sum(result * result, 0) / SIZE + eps)
            weight = query_norm
            if head >= QUERIES:
                weight = key_norm
            result *= scale * tl.load(weight + place, mask=real, other=0.0).to(tl.float32)
            other *= scale * tl.load(weight + partner, mask=turned, other=0.0).to(tl.float32)
        cosine = tl.load(cos + vector * TURNED + place, mask=turned, other=1.0).to(tl.float32)
        sine = tl.load(sin + vector * TURNED + place, mask=turned, other=0.0).to(tl.float32)
        result = result * cosine + other * sine
    rounded = result.to(queries.dtype.element_ty)
    if head < QUERIES:
        tl.store(queries + (vector * QUERIES + head) * SIZE + place, rounded, mask=real)
    else:
        column = tl.load(columns + vector)
        there = (vector // nodes) * cache_slot + column * cache_row + place
        if head < QUERIES + KEYS:
            tl.store(keys + there + (head - QUERIES) * cache_head, rounded, mask=real)
        else:
            tl.store(values + there + (head - QUERIES - KEYS) * cache_head, rounded, mask=real)
