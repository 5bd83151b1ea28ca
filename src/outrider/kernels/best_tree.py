"""The most probable tree of slots that are independent of each other, built on the device in one launch.

The plain versions are ``drafters.trees.heap`` and, on the device, ``drafters.trees.frontier``, which also serves scores
that depend on the path; the kernel in ``best_tree_kernel`` takes the same nodes in the same order where no two paths
are equally probable.
Shape letters: B batch rows, L slots, K words of a slot, N nodes, root included.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from outrider.kernels.launch import early, power


class BestTree(NamedTuple):
    """Nodes of each row as ``engine.tree.DraftTree`` has them; ``counts_B`` are real, others pad under the root."""

    tokens_BN: Tensor
    parents_BN: Tensor
    depths_BN: Tensor
    visible_BNN: Tensor
    counts_B: Tensor


def best_tree(words_BLK: Tensor, log_probs_BLK: Tensor, anchors_B: Tensor, width: int) -> BestTree:
    """Take the best ``width - 1`` paths of each row.

    Args:
        words_BLK: int64, best first.
        log_probs_BLK: float32, never rising within a slot.
        anchors_B: the roots.
        width: N.
    """
    rows, slots, candidates = words_BLK.shape
    tokens, parents, depths = anchors_B.new_empty(3, rows, width)
    visible = torch.empty(rows, width, width, dtype=torch.bool, device=anchors_B.device)
    counts = torch.empty_like(anchors_B)
    _kernel()[(rows,)](
        words_BLK.contiguous(),
        log_probs_BLK.contiguous(),
        anchors_B,
        tokens,
        parents,
        depths,
        visible.view(torch.uint8),
        counts,
        slots,
        candidates,
        width,
        OPEN=power(width),
        **early(anchors_B.device),
        num_warps=4 if width > 32 else 1,  # noqa: PLR2004 -- one path a thread
    )
    return BestTree(tokens, parents, depths, visible, counts)


@cache
def _kernel() -> Any:
    """Build the kernel when it is first wanted: Triton is on GPU machines alone."""
    from outrider.kernels.best_tree_kernel import best_tree_kernel

    return best_tree_kernel
