"""A causal convolution over a draft tree: each node's window is its own path, and before that what is committed.

Depthwise, without a bias. Shape letters: B batch rows, N nodes, P path, C channels, W width of the convolution.
"""

import torch
from torch import Tensor
from torch.nn import functional


def window_slots(parents: Tensor, depths: Tensor, width: int) -> Tensor:
    """Where each node's window lies in [stored inputs | node inputs]: int64, [B, N, W], oldest first.

    Args:
        parents: [B, N]; of a node of depth 0 it means nothing, its past is what is committed.
        depths: [B, N].
        width: W; the last W - 1 committed inputs are stored.
    """
    above = torch.where(depths == 0, -1, parents)
    at = torch.arange(parents.shape[1], device=parents.device).expand_as(parents)
    slots = [at]
    for _ in range(width - 1):
        # Behind the root the steps go on through the stored inputs, from the latest backwards.
        at = torch.where(at >= 0, above.gather(1, at.clamp(min=0)), at - 1)
        slots.append(at)
    return torch.stack(slots[::-1], -1) + (width - 1)


def tree_convolution(inputs: Tensor, weight: Tensor, slots: Tensor) -> Tensor:
    """Convolve, and apply SiLU: [B, N, C], float32 (float64 of float64 inputs).

    Args:
        inputs: [B, W - 1 + N, C], the last committed ones, oldest first, and behind them those of the nodes.
        weight: [C, W], the node's own factor last.
        slots: of ``window_slots``.
    """
    dtype = torch.promote_types(inputs.dtype, torch.float32)
    rows = torch.arange(len(inputs), device=inputs.device)[:, None]
    result = weight.new_zeros((), dtype=dtype)
    for place, factors in enumerate(weight.to(dtype).T):
        result = result + inputs[rows, slots[:, :, place]].to(dtype) * factors
    return functional.silu(result)


def commit_inputs(inputs: Tensor, width: int, path: Tensor, counts: Tensor) -> Tensor:
    """Return the last committed inputs [B, W - 1, C] after the first ``counts`` nodes of each path.

    Args:
        inputs: as ``tree_convolution`` took them.
        width: W.
        path: [B, P] nodes from the root down.
        counts: [B] nodes that count; 0 leaves a row as it is.
    """
    stored = torch.arange(width - 1, device=path.device)
    places = torch.cat((stored.expand(len(path), -1), path + width - 1), 1).gather(1, counts[:, None] + stored)
    return inputs[torch.arange(len(path), device=path.device)[:, None], places]
