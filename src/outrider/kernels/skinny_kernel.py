"""The Triton kernel of ``skinny``: weights are the large operand, tokens the small one, inputs cut in pieces.

Only ``skinny`` imports it, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin, fetch_ahead


@triton.jit
def _product(sums, weights, x, scale, mask, SCALED: tl.constexpr, EVEN: tl.constexpr, EXACT: tl.constexpr):
    """Add one tile of weights [BO, BK] times tokens [BK, BT]."""
    w = tl.load(weights) if EVEN else tl.load(weights, mask=mask, other=0.0)
    if SCALED:
        result = sums + tl.dot(w.to(x.dtype), x, input_precision=EXACT) * tl.load(scale)
    else:
        result = tl.dot(w, x, sums, input_precision=EXACT)
    return result


@triton.jit
def skinny_kernel(
    weight,
    scale,
    rows,
    bias,
    result,
    parts,
    counters,
    outputs,
    tokens,
    inputs,
    piece,
    result_row,
    scale_row,
    BO: tl.constexpr,
    BT: tl.constexpr,
    BK: tl.constexpr,
    PIECES: tl.constexpr,
    GATED: tl.constexpr,
    BIASED: tl.constexpr,
    SCALED: tl.constexpr,
    EVEN: tl.constexpr,
    AHEAD: tl.constexpr,
    LINE: tl.constexpr,
    EXACT: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Rows times weights; the last program of a tile to end adds the pieces up, always in the same order."""
    across, below, which = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    output = across * BO + tl.arange(0, BO)
    token = below * BT + tl.arange(0, BT)
    place = tl.arange(0, BK)
    start = which * piece
    end = tl.minimum(start + piece, inputs)
    real_output, real_token = output < outputs, token < tokens
    first = weight + output[:, None].to(tl.int64) * inputs
    first_up = weight + (output[:, None].to(tl.int64) + outputs) * inputs
    vectors = rows + token[None, :] * inputs + place[:, None]
    # One scale a block of BK by BK weights, and no tile crosses a block.
    scales = scale + (across * BO // BK) * scale_row
    up_scales = scales + (outputs // BK) * scale_row
    if EVEN:
        ahead = start + tl.arange(0, AHEAD)[None, :] * LINE
        fetch_ahead(first + ahead, EARLY)
        if GATED:
            fetch_ahead(first_up + ahead, EARLY)
    begin(EARLY)
    sums = tl.zeros((BO, BT), tl.float32)
    up_sums = tl.zeros((BO, BT), tl.float32)
    for at in range(start, end, BK):
        inside = at + place < end
        seen = real_token[None, :] if EVEN else inside[:, None] & real_token[None, :]
        x = tl.load(vectors + at, mask=seen, other=0.0)
        mask = real_output[:, None] & inside[None, :]
        sums = _product(sums, first + at + place[None, :], x, scales + at // BK, mask, SCALED, EVEN, EXACT)
        if GATED:
            up_sums = _product(
                up_sums, first_up + at + place[None, :], x, up_scales + at // BK, mask, SCALED, EVEN, EXACT
            )
    if GATED:
        sums = sums * tl.sigmoid(sums) * up_sums
    real = real_output[:, None] & real_token[None, :]
    wanted = result + token[None, :].to(tl.int64) * result_row + output[:, None]
    if PIECES > 1:
        size = tokens * outputs
        places = parts + token[None, :] * outputs + output[:, None]
        tl.store(places + which * size, sums, mask=real)
        tl.debug_barrier()  # all threads have stored before one of them says so
        counter = counters + below * tl.num_programs(0) + across
        done = tl.atomic_add(counter, 1, sem="acq_rel")
        if done == PIECES - 1:
            tl.debug_barrier()
            sums = tl.zeros((BO, BT), tl.float32)
            for part in range(PIECES):
                sums += tl.load(places + part * size, mask=real, other=0.0, cache_modifier=".cg")
            if BIASED:
                sums += tl.load(bias + output, mask=real_output, other=0.0)[:, None].to(tl.float32)
            tl.store(wanted, sums.to(result.dtype.element_ty), mask=real)
            tl.store(counter, 0)
    else:
        if BIASED:
            sums += tl.load(bias + output, mask=real_output, other=0.0)[:, None].to(tl.float32)
        tl.store(wanted, sums.to(result.dtype.element_ty), mask=real)
