"""The Triton kernel of ``ragged``: one program a row and key/value head, an online softmax over blocks of columns.

Only ``ragged`` imports it, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def mix_ragged_kernel(  # noqa: PLR0917 -- how kernels take their tensors
    query,
    key,
    value,
    mixed,
    lengths,
    query_row,
    query_head,
    key_row,
    key_head,
    key_column,
    value_row,
    value_head,
    value_column,
    scale,
    window,
    QUERIES: tl.constexpr,
    ROWS: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    EXACT: tl.constexpr,
):
    """Mix the values of one row and head; queries of a head are the rows of one small product."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    last = tl.load(lengths + row)  # the column of the new token, which sees itself
    first = last * 0
    if window > 0:
        first = tl.maximum(first, last - window + 1)

    member = tl.arange(0, ROWS)
    place = tl.arange(0, WIDTH)
    inside = (member[:, None] < QUERIES) & (place[None, :] < SIZE)
    heads = head * QUERIES + member
    asked = tl.load(query + row * query_row + heads[:, None] * query_head + place[None, :], mask=inside, other=0.0)
    keys = key + row * key_row + head * key_head + place[None, :]
    values = value + row * value_row + head * value_head + place[None, :]

    best = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range((first // COLUMNS) * COLUMNS, last + 1, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        seen = (column >= first) & (column <= last)
        wanted = seen[:, None] & (place[None, :] < SIZE)
        key_block = tl.load(keys + column[:, None] * key_column, mask=wanted, other=0.0)
        scores = tl.dot(asked, tl.trans(key_block), input_precision=EXACT) * scale
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, 1))
        fading = tl.exp(best - higher)  # the first block holds a column that is seen, so this is a number
        weights = tl.exp(scores - higher[:, None])
        value_block = tl.load(values + column[:, None] * value_column, mask=wanted, other=0.0)
        total = total * fading + tl.sum(weights, 1)
        sums = sums * fading[:, None] + tl.dot(weights.to(value_block.dtype), value_block, input_precision=EXACT)
        best = higher
    result = (sums / total[:, None]).to(mixed.dtype.element_ty)
    group = tl.num_programs(1) * QUERIES
    tl.store(mixed + (row * group + heads[:, None]) * SIZE + place[None, :], result, mask=inside)
