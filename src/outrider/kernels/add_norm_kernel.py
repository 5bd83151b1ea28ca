"""The Triton kernel of ``add_norm``: one program a row. Only ``add_norm`` imports it, where Triton is."""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin


@triton.jit
def add_norm_kernel(
    update,
    hidden,
    weight,
    total,
    normed,
    width,
    eps,
    ADDED: tl.constexpr,
    WIDTH: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Sum, rounded as it is stored, and its RMS norm."""
    begin(EARLY)
    row = tl.program_id(0).to(tl.int64) * width
    place = tl.arange(0, WIDTH)
    real = place < width
    values = tl.load(update + row + place, mask=real, other=0.0).to(tl.float32)
    if ADDED:
        values += tl.load(hidden + row + place, mask=real, other=0.0).to(tl.float32)
        rounded = values.to(total.dtype.element_ty)
        tl.store(total + row + place, rounded, mask=real)
        values = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 0) / width + eps)
    result = values * scale * tl.load(weight + place, mask=real, other=0.0).to(tl.float32)
    tl.store(normed + row + place, result.to(normed.dtype.element_ty), mask=real)
