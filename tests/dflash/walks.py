"""Greedy chains through the heads of DFlash2 and DSpark, one slot after the other, from their mathematics.

Shape letters: N slots of the block, K slots that predict, H hidden, R rank, V words.
"""

from collections.abc import Sequence

import torch
from dflash.reference import Tensors, first_slot
from torch import Tensor

from outrider.models.dflash.config import DFlashConfig


def selector_chain(
    config: DFlashConfig, tensors: Tensors, hidden_KH: Tensor, logits_KV: Tensor, anchor: int
) -> list[int]:
    """DFlash2: of each slot's best candidates the one whose logit plus bilinear score is highest."""
    name = "candidate_selector."
    predecessors, successors = (tensors[f"{name}{which}_codebook"] for which in ("predecessor", "successor"))
    chain = [anchor]
    for hidden, logits in zip(hidden_KH @ tensors[f"{name}hidden_projection.weight"].T, logits_KV, strict=True):
        candidates = logits.topk(config.selector.top_k).indices
        scores = logits[candidates] + successors[candidates] @ (predecessors[chain[-1]] * hidden)
        chain.append(int(candidates[scores.argmax()]))
    return chain[1:]


def markov_logits(
    config: DFlashConfig, tensors: Tensors, hidden_NH: Tensor, logits_KV: Tensor, block: Sequence[int]
) -> Tensor:
    """DSpark: logits of the slots that predict, corrected along a given block of tokens (the anchor first)."""
    biases, state = [], torch.zeros(config.markov.rank, dtype=hidden_NH.dtype)
    for previous, hidden in zip(previous_tokens(config, block), hidden_NH, strict=True):
        bias, state = markov_bias(config, tensors, hidden, previous, state)
        biases.append(bias)
    return logits_KV + torch.stack(biases)[first_slot(config) :]


def markov_chain(
    config: DFlashConfig, tensors: Tensors, hidden_NH: Tensor, logits_KV: Tensor, anchor: int
) -> list[int]:
    """DSpark: the best token of each slot after the best before it, as the target counts words."""
    chain: list[int] = []
    for slot in range(len(logits_KV)):
        padded = [anchor, *chain, *[0] * config.block_size][: config.block_size]
        best = int(markov_logits(config, tensors, hidden_NH, logits_KV, padded)[slot].argmax())
        chain.append(best + int(tensors["d2t"][best]) if "d2t" in tensors else best)
    return chain


def previous_tokens(config: DFlashConfig, block: Sequence[int]) -> list[int]:
    """The token before the one a slot predicts; a slot that predicts nothing takes the anchor."""
    return list(block) if config.anchor_predicts else [block[0], *block[:-1]]


def markov_bias(
    config: DFlashConfig, tensors: Tensors, hidden_H: Tensor, previous: int, state_R: Tensor
) -> tuple[Tensor, Tensor]:
    """What one slot's logits gain, [V], and the state after it."""
    name = "markov_head."
    known_R, out = tensors[f"{name}markov_w1.weight"][previous], tensors[f"{name}markov_w2.weight"]
    if config.markov.kind == "vanilla":
        return out @ known_R, state_R
    if config.markov.kind == "gated":
        entering = torch.cat((hidden_H, known_R))
        gate = tensors[f"{name}gate_proj.weight"] @ entering + tensors[f"{name}gate_proj.bias"]
        return out @ (gate.sigmoid() * known_R), state_R
    entering = torch.cat((state_R, known_R, hidden_H))
    joint = tensors[f"{name}joint_proj.weight"] @ entering + tensors[f"{name}joint_proj.bias"]
    gate, candidate, output = joint.chunk(3)
    keep = gate.sigmoid()
    return out @ output.tanh(), keep * state_R + (1 - keep) * candidate.tanh()


def confidences(config: DFlashConfig, tensors: Tensors, hidden_KH: Tensor, previous_K: Sequence[int]) -> Tensor:
    """DSpark: the foreseen chance of each slot's token, given the token before it."""
    known_KR = tensors["markov_head.markov_w1.weight"][list(previous_K)] if config.confidence.with_markov else None
    entering = hidden_KH if known_KR is None else torch.cat((hidden_KH, known_KR), -1)
    weight, bias = tensors["confidence_head.proj.weight"], tensors["confidence_head.proj.bias"]
    return torch.sigmoid(entering @ weight[0] + bias)
