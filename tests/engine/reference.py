"""The processed law as others define it: Transformers' processors and warpers, penalties by hand from a plain list."""

from collections.abc import Sequence

import torch
from transformers.generation import logits_process as theirs

from outrider.engine.params import SamplingParams


def edited(
    logits_V: torch.Tensor, prompt: Sequence[int], output: Sequence[int], params: SamplingParams
) -> torch.Tensor:
    """Bias and penalties."""
    scores = logits_V.clone()
    for token, bias in params.logit_bias.items():
        scores[token] += bias
    text = torch.tensor([[*prompt, *output]])
    if params.repetition_penalty != 1:
        processor = theirs.RepetitionPenaltyLogitsProcessor(params.repetition_penalty)
        scores = processor(text, scores[None])[0]
    for token in set(output):
        scores[token] -= params.frequency_penalty * list(output).count(token)
        scores[token] -= params.presence_penalty
    return scores


def law(logits_V: torch.Tensor, prompt: Sequence[int], output: Sequence[int], params: SamplingParams) -> torch.Tensor:
    """What the next token is drawn from, float64."""
    scores = edited(logits_V, prompt, output, params).double()[None]
    warpers = [theirs.TemperatureLogitsWarper(params.temperature)]
    if params.top_k:
        warpers.append(theirs.TopKLogitsWarper(params.top_k))
    if params.top_p < 1:
        warpers.append(theirs.TopPLogitsWarper(params.top_p))
    if params.min_p:
        warpers.append(theirs.MinPLogitsWarper(params.min_p))
    for warper in warpers:
        scores = warper(None, scores)
    return scores[0].softmax(-1)
