"""The Triton kernel of ``best_tree``: one program a row, open paths in its registers. Only ``best_tree`` imports it."""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin


@triton.jit
def best_tree_kernel(
    words,
    log_probs,
    anchors,
    tokens,
    parents,
    depths,
    visible,
    counts,
    slots,
    candidates,
    width,
    OPEN: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Take the best open path, open its next sibling in its place and its first child in a new one."""
    begin(EARLY)
    row = tl.program_id(0).to(tl.int64)
    words += row * slots * candidates
    log_probs += row * slots * candidates
    tokens += row * width
    parents += row * width
    depths += row * width
    visible += row * width * width
    place = tl.arange(0, OPEN)
    inside = place < width
    nothing = tl.full((OPEN,), float("-inf"), tl.float64)
    reach = tl.where(place == 0, tl.load(log_probs).to(tl.float64), nothing)
    above = tl.zeros((OPEN,), tl.float64)
    parent, depth, rank = tl.zeros((OPEN,), tl.int32), tl.full((OPEN,), 1, tl.int32), tl.zeros((OPEN,), tl.int32)
    tl.store(tokens, tl.load(anchors + row))
    tl.store(parents, 0)
    tl.store(depths, 0)
    tl.store(visible + place, (place == 0).to(tl.uint8), mask=inside)
    count = 1
    for node in range(1, width):
        best = tl.max(reach, 0)
        # Of equals the one nearer to the root: a parent before its child.
        chosen = tl.min(tl.where(reach == best, depth * OPEN + place, 2147483647), 0) % OPEN
        here = place == chosen
        d, r, p = (
            tl.sum(tl.where(here, depth, 0), 0),
            tl.sum(tl.where(here, rank, 0), 0),
            tl.sum(tl.where(here, parent, 0), 0),
        )
        real = best > float("-inf")
        d, p = tl.where(real, d, 1), tl.where(real, p, 0)  # padding hangs on the root
        word = tl.load(words + (d - 1) * candidates + r)
        tl.store(tokens + node, tl.where(real, word, 0))
        tl.store(parents + node, p.to(tl.int64))
        tl.store(depths + node, d.to(tl.int64))
        tl.debug_barrier()
        line = tl.load(visible + p * width + place, mask=inside, other=0)
        tl.store(visible + node * width + place, tl.where(place == node, 1, line).to(tl.uint8), mask=inside)
        tl.debug_barrier()
        count += real.to(tl.int32)
        before = tl.sum(tl.where(here, above, 0.0), 0)
        has_sibling, has_child = real & (r + 1 < candidates), real & (d < slots)
        sibling = before + tl.load(log_probs + (d - 1) * candidates + r + 1, mask=has_sibling, other=float("-inf")).to(
            tl.float64
        )
        child = best + tl.load(log_probs + d * candidates, mask=has_child, other=float("-inf")).to(tl.float64)
        new = place == node
        reach = tl.where(here, sibling, tl.where(new, child, reach))
        rank = tl.where(here, r + 1, tl.where(new, 0, rank))
        above = tl.where(new, best, above)
        parent = tl.where(new, node, parent)
        depth = tl.where(new, d + 1, depth)
    tl.store(counts + row, count.to(tl.int64))
