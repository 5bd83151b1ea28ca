"""Temperature, top-k, top-p and min-p: from edited logits to the law that tokens are drawn from.

Sorting a vocabulary takes longer than all the rest of a round, and only one thing is wanted of the order: the worst
word that stays. A CPU looks for it among the best few thousand words, and among all where those do not hold enough.
Shape letters: N nodes, V vocabulary, S best words of a node.
"""

import numpy as np
import torch
from torch import Tensor

from outrider.engine.params import SamplingParams

HEAD = 4096  # best words that are sorted first: they hold 0.95 of 97 laws in 100 of SmolLM2-135M at temperature 1


def law(edited_NV: Tensor, params: SamplingParams) -> Tensor:
    """Return the law of each node, float64 [N, V].

    Args:
        edited_NV: logits with bias and penalties, float32.
        params: how they are cut; a temperature above 0.
    """
    law_NV = edited_NV.to(torch.float64, copy=True).div_(params.temperature)
    law_NV.sub_(law_NV.amax(-1, keepdim=True)).exp_()
    # Factors of 0 and 1: filling what a mask names takes two to three times as long on a CPU.
    if 0 < params.top_k < edited_NV.shape[-1]:
        law_NV.mul_(edited_NV >= _kth_best(edited_NV, params.top_k))
    if params.top_p < 1:
        law_NV.mul_(_nucleus(edited_NV, law_NV.sum(-1, keepdim=True), params))
    law_NV.div_(law_NV.sum(-1, keepdim=True))
    if params.min_p > 0:
        law_NV.mul_(law_NV >= params.min_p * law_NV.amax(-1, keepdim=True))
        law_NV.div_(law_NV.sum(-1, keepdim=True))
    return law_NV


def _kth_best(logits_NV: Tensor, k: int) -> Tensor:
    if logits_NV.device.type != "cpu":
        return logits_NV.topk(k, dim=-1).values[:, -1:]
    place = logits_NV.shape[-1] - k
    return torch.from_numpy(np.partition(logits_NV.numpy(), place, axis=-1)[:, place, None])


def _nucleus(logits_NV: Tensor, total_N1: Tensor, params: SamplingParams) -> Tensor:
    """Which words top-p keeps: the best, until those before them hold enough; of equally good ones the first."""
    worst_N1, count_N1, tied_N1 = _find_worst(logits_NV, total_N1, params)
    kept_NV = logits_NV >= worst_N1
    if logits_NV.device.type == "cpu" and not bool(tied_N1.any()):
        return kept_NV
    ties_NV = logits_NV == worst_N1
    room_N1 = count_N1 - (logits_NV > worst_N1).sum(-1, keepdim=True)
    return kept_NV & ~(ties_NV & (ties_NV.cumsum(-1) > room_N1))


def _find_worst(logits_NV: Tensor, total_N1: Tensor, params: SamplingParams) -> tuple[Tensor, Tensor, Tensor]:
    """Value of the worst word that stays, how many stay, whether the next best word is as good."""
    if logits_NV.device.type != "cpu":  # it sorts fast, and would wait for the answer whether few words were enough
        return _worst_of(logits_NV.sort(dim=-1, descending=True).values, total_N1, params)[:3]
    worst_N1, count_N1, tied_N1, held_N1 = _worst_of(_best(logits_NV, HEAD), total_N1, params)
    for row in (held_N1[:, 0] < params.top_p).nonzero()[:, 0].tolist():
        one = slice(row, row + 1)
        found = _worst_of(_best(logits_NV[one], logits_NV.shape[-1]), total_N1[one], params)
        worst_N1[one], count_N1[one], tied_N1[one], _ = found
    return worst_N1, count_N1, tied_N1


def _best(logits_NV: Tensor, size: int) -> Tensor:
    """Values of the best words, best first: numpy sorts values without their places, several times as fast."""
    values_NV = logits_NV.numpy()
    if size < values_NV.shape[-1]:
        values_NV = np.partition(values_NV, -size, axis=-1)[:, -size:]
    return torch.from_numpy(np.sort(values_NV, axis=-1)[:, ::-1].copy())


def _worst_of(best_NS: Tensor, total_N1: Tensor, params: SamplingParams) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As ``_find_worst``, among the best words; and the share that these hold."""
    shares_NS = best_NS.to(torch.float64, copy=True).div_(params.temperature)
    shares_NS.sub_(shares_NS[:, :1].clone()).exp_().div_(total_N1)
    through_NS = shares_NS.cumsum(-1)
    held_N1 = through_NS[:, -1:].clone()
    count_N1 = (through_NS.sub_(shares_NS) < params.top_p).sum(-1, keepdim=True).clamp(min=1)
    worst_N1 = best_NS.gather(1, count_N1 - 1)
    tied_N1 = best_NS.gather(1, count_N1.clamp(max=best_NS.shape[-1] - 1)) == worst_N1
    return worst_N1, count_N1, tied_N1, held_N1
