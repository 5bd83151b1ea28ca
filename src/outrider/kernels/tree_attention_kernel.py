"""The Triton kernels of ``tree_attention``: one program a piece of the columns, then one a node and head.

Only ``tree_attention`` imports them, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin


@triton.jit
def _step(
    asked,
    keys,
    values,
    key_row,
    column,
    wanted,
    seen,
    scale,
    best,
    total,
    sums,
    EXACT: tl.constexpr,
):
    """Take one block of columns in."""
    key_block = tl.load(keys + column[:, None] * key_row, mask=wanted, other=0.0)
    scores = tl.dot(asked, tl.trans(key_block), input_precision=EXACT) * scale
    scores = tl.where(seen, scores, float("-inf"))
    higher = tl.maximum(best, tl.max(scores, 1))
    from_here = tl.where(higher == float("-inf"), 0.0, higher)  # a row that has seen nothing yet
    fading = tl.exp(best - from_here)
    weights = tl.exp(scores - from_here[:, None])
    value_block = tl.load(values + column[:, None] * key_row, mask=wanted, other=0.0)
    total = total * fading + tl.sum(weights, 1)
    sums = sums * fading[:, None] + tl.dot(weights.to(value_block.dtype), value_block, input_precision=EXACT)
    return higher, total, sums


@triton.jit
def tree_attention_kernel(
    query,
    key,
    value,
    sees,
    depths,
    place_depths,
    lengths,
    parts,
    shares,
    nodes,
    places,
    key_slot,
    key_head,
    key_row,
    scale,
    window,
    HEADS: tl.constexpr,
    QUERIES: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WINDOWED: tl.constexpr,
    EXACT: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Mix what the queries of one key/value head see of one piece of the columns."""
    begin(EARLY)
    piece, pieces = tl.program_id(1), tl.num_programs(1)
    row = (tl.program_id(2) // HEADS).to(tl.int64)
    head = tl.program_id(2) % HEADS
    length = tl.load(lengths + row)
    end = length + places
    first = length * 0
    if WINDOWED:
        first = tl.maximum(first, length - window + 1)
    share = tl.cdiv(tl.cdiv(end - first, pieces), COLUMNS) * COLUMNS
    start = first + piece * share
    end = tl.minimum(start + share, end)

    number = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    node = number // QUERIES
    asks = node < nodes
    vector = (row * nodes + node) * (HEADS * QUERIES) + head * QUERIES + number % QUERIES
    dim = tl.arange(0, WIDTH)
    in_head = dim < SIZE
    asked = tl.load(query + vector[:, None] * SIZE + dim[None, :], mask=asks[:, None] & in_head[None, :], other=0.0)
    keys = key + row * key_slot + head * key_head + dim[None, :]
    values = value + row * key_slot + head * key_head + dim[None, :]
    position = tl.load(depths + row * nodes + node, mask=asks, other=0) + length

    best = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, WIDTH), tl.float32)
    # Blocks of committed columns alone, which every node sees but for windows.
    whole = start + tl.maximum(tl.minimum(end, length) - start, 0) // COLUMNS * COLUMNS
    for at in range(start, whole, COLUMNS):
        column = at + tl.arange(0, COLUMNS)
        seen = (asks[:, None]) & (column[None, :] >= 0)
        if WINDOWED:
            seen = seen & (position[:, None] - column[None, :] < window)
        wanted = (column[:, None] >= 0) & in_head[None, :]
        best, total, sums = _step(asked, keys, values, key_row, column, wanted, seen, scale, best, total, sums, EXACT)
    for at in range(whole, end, COLUMNS):
        column = at + tl.arange(0, COLUMNS)
        inside = column < end
        place = column - length
        is_node = inside & (place >= 0)
        sight = sees + (row * nodes + node)[:, None] * places + place[None, :]
        among = tl.load(sight, mask=asks[:, None] & is_node[None, :], other=0) != 0
        seen = among | ((inside & (place < 0))[None, :] & asks[:, None])
        if WINDOWED:
            below = tl.load(place_depths + row * places + place, mask=is_node, other=0)
            distance = position[:, None] - tl.where(is_node, length + below, column)[None, :]
            seen = seen & (distance < window) & (-distance < window)
        wanted = inside[:, None] & in_head[None, :]
        best, total, sums = _step(asked, keys, values, key_row, column, wanted, seen, scale, best, total, sums, EXACT)
    mixed = sums / tl.where(total > 0, total, 1.0)[:, None]
    part = vector * pieces + piece
    tl.store(parts + part[:, None] * SIZE + dim[None, :], mixed, mask=asks[:, None] & in_head[None, :])
    tl.store(shares + part, tl.where(total > 0, best + tl.log(tl.where(total > 0, total, 1.0)), best), mask=asks)


@triton.jit
def merge_kernel(
    parts,
    shares,
    gate,
    mixed,
    pieces,
    gate_row,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    PIECES: tl.constexpr,
    GATED: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Weigh the pieces of one node and head, and gate the sum."""
    begin(EARLY)
    vector = tl.program_id(0).to(tl.int64)
    dim, piece = tl.arange(0, WIDTH), tl.arange(0, PIECES)
    in_head, real = dim < SIZE, piece < pieces
    share = tl.load(shares + vector * pieces + piece, mask=real, other=float("-inf"))
    weight = tl.exp(share - tl.max(share, 0))
    part = tl.load(
        parts + (vector * pieces + piece)[:, None] * SIZE + dim[None, :],
        mask=real[:, None] & in_head[None, :],
        other=0.0,
    )
    result = tl.sum(part * weight[:, None], 0) / tl.sum(weight, 0)
    if GATED:
        opened = gate + (vector // HEADS) * gate_row + (vector % HEADS) * SIZE + dim
        result *= tl.sigmoid(tl.load(opened, mask=in_head, other=0.0).to(tl.float32))
    tl.store(mixed + vector * SIZE + dim, result.to(mixed.dtype.element_ty), mask=in_head)
