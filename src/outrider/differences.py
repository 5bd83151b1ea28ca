"""Why a drafted text left the plain one: the target is asked again at the first token that differs.

One plain pass over what both texts share gives the law there. Where the two tokens were all but equally
good, float arithmetic decided between them, and that is a near-tie; anything else is a real difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from outrider.engine.rules import Rules
from outrider.engine.tree import DraftTree
from outrider.engine.uniforms import DECIDE
from outrider.results import NearTie

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.models.decoder import Decoder

NEAR_TIE = 1e-4
# Passes of different widths round differently: two words this many steps of the activations' type apart are a tie.
ROUNDING_STEPS = 4
NOTHING = -1  # where a text has ended and the other goes on


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token at which a drafted text differs from the plain one.

    Attributes:
        position: index in the output.
        margin: in greedy decoding, how far the worse of the two tokens lies below the best logit; in sampling, how
            far the random number that decides lies from where it would decide for the other token, in probability.
        limit: margins below it are explained by rounding: 1e-4, and more where activations are coarser than fp32.
    """

    drafter: str
    prompt: int
    position: int
    margin: float
    limit: float
    plain_token: int
    drafted_token: int

    @property
    def near_tie(self) -> bool:
        """Whether rounding explains it."""
        return self.margin < self.limit

    def as_near_tie(self) -> NearTie:
        """Return the record of it."""
        return NearTie(
            prompt=self.prompt,
            position=self.position,
            margin=self.margin,
            plain_token=self.plain_token,
            drafted_token=self.drafted_token,
        )


def examine(
    target: "Decoder",
    params: "SamplingParams",
    *,
    drafter: str,
    prompt: int,
    prompt_ids: Sequence[int],
    plain: Sequence[int],
    drafted: Sequence[int],
) -> Difference:
    """Find where two texts part and measure how close the decision was there.

    Args:
        target: the model.
        params: of both texts.
        drafter: of the second text, for the record.
        prompt: its index, for the record.
        prompt_ids: its tokens.
        plain: output without drafts.
        drafted: output with drafts; differs.
    """
    position = next(
        (i for i, (a, b) in enumerate(zip(plain, drafted, strict=False)) if a != b),
        min(len(plain), len(drafted)),
    )
    tokens = [text[position] if position < len(text) else NOTHING for text in (plain, drafted)]
    margin, limit = float("inf"), NEAR_TIE
    if NOTHING not in tokens:
        margin, best = _margin(target, params, prompt_ids, plain[:position], (tokens[0], tokens[1]))
        limit = _limit(target.activations, best if params.greedy else 1.0)
    return Difference(drafter, prompt, position, margin, limit, tokens[0], tokens[1])


@torch.inference_mode()
def _margin(
    target: "Decoder",
    params: "SamplingParams",
    prompt: Sequence[int],
    output: Sequence[int],
    tokens: tuple[int, int],
) -> tuple[float, float]:
    """How close the decision was, and the best logit."""
    logits_1V = _next_logits(target, [*prompt, *output])
    rules = Rules(params, logits_1V.shape[-1], logits_1V.device)
    rules.see_prompt(list(prompt))
    rules.see_output(list(output))
    root_1 = torch.tensor([(*prompt, *output)[-1]], device=logits_1V.device)
    alone_11 = torch.ones(1, 1, dtype=torch.bool, device=logits_1V.device)
    edited_1V = rules.edit(logits_1V, root_1, alone_11)
    best = float(edited_1V.max())
    if params.greedy:
        return best - float(edited_1V[0, list(tokens)].min()), best
    uniform = float(rules.uniforms.at(DECIDE, len(prompt) + len(output), 1)[0])
    return _distance(rules.probabilities(edited_1V)[0], uniform, tokens), best


def _limit(activations: torch.dtype, scale: float) -> float:
    """Margins that rounding explains, for numbers of this size (a logit, or a probability)."""
    if activations == torch.float32:
        return NEAR_TIE
    return max(NEAR_TIE, ROUNDING_STEPS * torch.finfo(activations).eps * abs(scale))


def _next_logits(target: "Decoder", ids: list[int]) -> Tensor:
    """Logits [1, V] after ``ids``, from one pass over all of them."""
    tree = DraftTree.chain(torch.tensor([ids], device=target.device))
    out = target.forward(
        tree,
        target.new_cache(slots=1, max_len=len(ids)),
        slice(0, 1),
        torch.zeros(1, dtype=torch.int64, device=target.device),
        span=len(ids),
    )
    return target.logits(out.hidden_BNH[:, -1])


def _distance(law_V: Tensor, uniform: float, tokens: tuple[int, int]) -> float:
    """How far ``uniform`` lies from the farther bound between the shares of two tokens."""
    bounds_V = law_V.cumsum(-1) / law_V.sum()
    between = bounds_V[min(tokens) : max(tokens)]
    return float((between - uniform).abs().max())
