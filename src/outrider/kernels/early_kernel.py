"""What every Triton kernel begins with, so that it may be launched while the kernel before it still runs.

Only kernels import it, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def begin(EARLY: tl.constexpr):
    """Let the next kernel come, then wait until the one before has ended and its results are there."""
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()


@triton.jit
def fetch_ahead(pointers, EARLY: tl.constexpr):
    """Bring what lies there into the second-level cache: weights, which no kernel before has written."""
    if EARLY:
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [pointers], dtype=tl.int32, is_pure=False, pack=1
        )
