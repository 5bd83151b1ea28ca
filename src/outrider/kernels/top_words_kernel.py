"""The Triton kernels of ``top_words``: the best of each stretch of the vocabulary, then the best of those.

Only ``top_words`` imports them, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin


@triton.jit
def stretch_kernel(
    logits,
    values,
    words,
    largest,
    sums,
    size,
    row_size,
    COUNT: tl.constexpr,
    STRETCH: tl.constexpr,
    EARLY: tl.constexpr,
):
    """The best words of one stretch, best first, the first of equals; and its part of the softmax sum."""
    begin(EARLY)
    row, stretch = tl.program_id(0).to(tl.int64), tl.program_id(1)
    stretches = tl.num_programs(1)
    place = stretch * STRETCH + tl.arange(0, STRETCH)
    x = tl.load(logits + row * row_size + place, mask=place < size, other=float("-inf")).to(tl.float32)
    best = tl.max(x, 0)
    at = row * stretches + stretch
    tl.store(largest + at, best)
    tl.store(sums + at, tl.sum(tl.exp(x - tl.where(best == float("-inf"), 0.0, best)), 0))
    for number in range(COUNT):
        best = tl.max(x, 0)
        word = tl.min(tl.where(x == best, place, 2147483647), 0)
        tl.store(values + at * COUNT + number, best)
        tl.store(words + at * COUNT + number, word)
        x = tl.where(place == word, float("-inf"), x)


@triton.jit
def merge_kernel(
    values,
    words,
    largest,
    sums,
    best_values,
    best_words,
    total,
    stretches,
    COUNT: tl.constexpr,
    WIDTH: tl.constexpr,
    STRETCHES: tl.constexpr,
    EARLY: tl.constexpr,
):
    """The best words of a row, and the logarithm of its softmax sum."""
    begin(EARLY)
    row = tl.program_id(0).to(tl.int64)
    stretch = tl.arange(0, STRETCHES)
    real = stretch < stretches
    tops = tl.load(largest + row * stretches + stretch, mask=real, other=float("-inf"))
    parts = tl.load(sums + row * stretches + stretch, mask=real, other=0.0)
    top = tl.max(tops, 0)
    tl.store(total + row, top + tl.log(tl.sum(parts * tl.exp(tops - top), 0)))
    place = tl.arange(0, WIDTH)
    inside = place < stretches * COUNT
    at = row * stretches * COUNT + place
    x = tl.load(values + at, mask=inside, other=float("-inf"))
    for number in range(COUNT):
        best = tl.max(x, 0)
        found = tl.min(tl.where((x == best) & inside, place, 2147483647), 0)
        tl.store(best_values + row * COUNT + number, best)
        tl.store(best_words + row * COUNT + number, tl.load(words + row * stretches * COUNT + found).to(tl.int64))
        x = tl.where(place == found, float("-inf"), x)
