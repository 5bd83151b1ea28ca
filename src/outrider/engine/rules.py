"""One sequence's sampling rules on the device: from raw logits to the law that is verified.

The processed law depends on the words of the path, so penalties are computed for each node with its own ancestors.
Shape letters: N nodes, V vocabulary.
"""

import torch
from torch import Tensor

from outrider.engine.cuts import law
from outrider.engine.params import SamplingParams
from outrider.engine.uniforms import Uniforms, fresh_seed


class Rules:
    """Sampling settings of a sequence with what they must remember.

    Args:
        params: the request's settings.
        vocab_size: V; ids of the logit bias are checked against it by the engine.
        device: where logits live.
    """

    def __init__(self, params: SamplingParams, vocab_size: int, device: torch.device) -> None:
        self.params = params
        self.uniforms = Uniforms(fresh_seed() if params.seed is None else params.seed)
        self._bias_V = _dense(params.logit_bias, vocab_size, device) if params.logit_bias else None
        shape = (vocab_size if params.penalises else 0,)
        self._prompt_V = torch.zeros(shape, device=device)
        self._output_V = torch.zeros(shape, device=device)

    def see_prompt(self, tokens: list[int]) -> None:
        """Count the prompt, for the repetition penalty."""
        self._count(self._prompt_V, tokens)

    def see_output(self, tokens: list[int]) -> None:
        """Count new tokens of the output."""
        self._count(self._output_V, tokens)

    def _count(self, counts_V: Tensor, tokens: list[int]) -> None:
        if self.params.penalises:
            index = torch.tensor(tokens, dtype=torch.int64, device=counts_V.device)
            counts_V.index_add_(0, index, torch.ones_like(index, dtype=counts_V.dtype))

    def edit(self, logits_NV: Tensor, tokens_N: Tensor, visible_NN: Tensor) -> Tensor:
        """Apply bias and penalties: what greedy decoding takes the argmax of.

        Args:
            logits_NV: raw, float32; node i's row is the law after node i.
            tokens_N: the nodes' tokens; the root is already counted as output or prompt.
            visible_NN: ancestors-or-self of each node.
        """
        if self._bias_V is not None:
            logits_NV = logits_NV + self._bias_V
        if not self.params.penalises:
            return logits_NV
        path_NV = torch.zeros_like(logits_NV)
        others = tokens_N[1:].expand(len(tokens_N), -1)
        path_NV.scatter_add_(1, others, visible_NN[:, 1:].to(path_NV.dtype))
        output_NV = self._output_V + path_NV
        seen_NV = (output_NV + self._prompt_V) > 0
        factor = self.params.repetition_penalty
        scaled = torch.where(logits_NV > 0, logits_NV / factor, logits_NV * factor)
        logits_NV = torch.where(seen_NV, scaled, logits_NV)
        logits_NV = logits_NV - self.params.frequency_penalty * output_NV
        return logits_NV - self.params.presence_penalty * (output_NV > 0).to(logits_NV.dtype)

    def probabilities(self, edited_NV: Tensor) -> Tensor:
        """Temperature, top-k, top-p, min-p: the law that tokens are drawn from, float64 [N, V]."""
        return law(edited_NV, self.params)


def _dense(bias: dict[int, float], vocab_size: int, device: torch.device) -> Tensor:
    dense_V = torch.zeros(vocab_size, device=device)
    dense_V[torch.tensor(list(bias), device=device)] = torch.tensor(
        list(bias.values()), dtype=dense_V.dtype, device=device
    )
    return dense_V


def draw(probabilities_NV: Tensor, uniforms_N: Tensor) -> Tensor:
    """Draw a word a row by inverting the cumulative law at the given uniforms.

    Words of probability zero cannot be drawn: the first word whose cumulative share exceeds the uniform has a
    share of its own, and rounding at the upper end falls back to the last word that has one.
    """
    cumulative_NV = probabilities_NV.cumsum(-1)
    total_N1 = cumulative_NV[:, -1:].contiguous()
    goal_N1 = uniforms_N[:, None] * total_N1
    drawn_N1 = torch.searchsorted(cumulative_NV, goal_N1, right=True)
    last_N1 = torch.searchsorted(cumulative_NV, total_N1)
    return torch.minimum(drawn_N1, last_N1)[:, 0]
