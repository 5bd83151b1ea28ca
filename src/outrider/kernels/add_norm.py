"""A residual sum and the RMS norm of it, in one pass over the vectors.

The plain version is ``models.layers.rms_norm`` of the sum; the kernel is in ``add_norm_kernel``.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from outrider.kernels.launch import early, power


def add_norm(update: Tensor, hidden: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return update + hidden, and its norm scaled by ``weight``; both [..., H], the sum in float32, then rounded.

    Args:
        update: contiguous.
        hidden: contiguous; None where there is nothing to add, and then ``update`` itself is the sum.
        weight: [H], any float type.
        eps: added to the mean square.
    """
    width = update.shape[-1]
    total = update if hidden is None else torch.empty_like(update)
    normed = torch.empty_like(update)
    _kernel()[(update.numel() // width,)](
        update,
        update if hidden is None else hidden,
        weight,
        total,
        normed,
        width,
        eps,
        ADDED=hidden is not None,
        WIDTH=power(width),
        **early(update.device),
        num_warps=8,
    )
    return total, normed


@cache
def _kernel() -> Any:
    """Build the kernel when it is first wanted: Triton is on GPU machines alone."""
    from outrider.kernels.add_norm_kernel import add_norm_kernel

    return add_norm_kernel
