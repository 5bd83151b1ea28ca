"""The best words of each slot of a block, and the two ways of scoring them: alone, or after the path before them.

Shape letters: B batch rows, L slots, K words of a slot, V all words, W paths, H hidden.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from outrider.engine.words import best_words
from outrider.models.dflash.heads import Correction


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best words of each slot, best first.

    Attributes:
        own_BLK: in the drafter's own ids.
        tokens_BLK: in the target's.
        logits_BLK: of the slots alone.
        total_BL: log of the sum over all words, in the same units.
    """

    own_BLK: Tensor
    tokens_BLK: Tensor
    logits_BLK: Tensor
    total_BL: Tensor

    @classmethod
    def of(cls, logits_BLV: Tensor, count: int, words_V: Tensor | None) -> "Candidates":
        """Choose them.

        Args:
            logits_BLV: of each slot alone.
            count: words of a slot.
            words_V: target id of each of the drafter's words; None where they are the target's.
        """
        logits_BLK, own_BLK = best_words(logits_BLV, count)
        tokens_BLK = own_BLK if words_V is None else words_V[own_BLK]
        return cls(own_BLK, tokens_BLK, logits_BLK, logits_BLV.logsumexp(-1))

    @property
    def log_probs_BLK(self) -> Tensor:  # noqa: N802 -- names a tensor by its shape
        """Log-probabilities among all words."""
        return self.logits_BLK - self.total_BL[..., None]


class Alone:
    """Scores a slot whatever the path before it."""

    def __init__(self, candidates: Candidates) -> None:
        self._tokens_BLK, self._log_probs_BLK = candidates.tokens_BLK, candidates.log_probs_BLK

    def start(self) -> Tensor:
        """No state."""
        return self._log_probs_BLK.new_empty(len(self._log_probs_BLK), 1, 0)

    def at(self, slot: int, previous_BW: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give every path the same (see ``trees.frontier.Scores``)."""
        shape = (-1, previous_BW.shape[1], -1)
        tokens_BWK = self._tokens_BLK[:, slot, None].expand(shape)
        return tokens_BWK, self._log_probs_BLK[:, slot, None].expand(shape), state


class AfterPath:
    """Scores a slot's candidates with the correction for the token before (DFlash2, DSpark).

    A head that chooses among candidates (DFlash2) defines their law: the softmax over them. One that corrects all
    words (DSpark) is asked for the candidates alone, and the words outside keep the mass they have without it: what
    normalises is the corrected candidates plus the uncorrected rest. Exact sums would take a product with the whole
    vocabulary for each path.

    Args:
        correction: the head.
        hidden_BLH: of the slots.
        candidates: the words to score.
    """

    def __init__(self, correction: Correction, hidden_BLH: Tensor, candidates: Candidates) -> None:
        self._correction, self._hidden_BLH, self._candidates = correction, hidden_BLH, candidates
        self._rest_BL1 = None if correction.candidates else _mass_outside(candidates)[..., None]

    def start(self) -> Tensor:
        """State of the head before the first slot."""
        return self._correction.start(len(self._hidden_BLH))

    def at(self, slot: int, previous_BW: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score and sort the candidates after each path (see ``trees.frontier.Scores``)."""
        found, own_BK = self._candidates, self._candidates.own_BLK[:, slot]
        bias_BWK, state = self._correction.step(self._hidden_BLH[:, slot], previous_BW, state, own_BK)
        logits_BWK = found.logits_BLK[:, slot, None] + bias_BWK.to(found.logits_BLK.dtype)
        total_BW1 = logits_BWK.logsumexp(-1, keepdim=True)
        if self._rest_BL1 is not None:
            total_BW1 = torch.logaddexp(total_BW1, self._rest_BL1[:, slot, None])
        log_probs_BWK, order_BWK = (logits_BWK - total_BW1).sort(dim=-1, descending=True, stable=True)
        tokens_BWK = found.tokens_BLK[:, slot, None].expand_as(order_BWK).gather(2, order_BWK)
        return tokens_BWK, log_probs_BWK, state


def _mass_outside(candidates: Candidates) -> Tensor:
    """Log of the sum over the words that are no candidates, [B, L]; -inf where there is nothing left of it."""
    inside_BL = candidates.log_probs_BLK.exp().sum(-1)
    return candidates.total_BL + torch.log1p(-inside_BL.clamp(max=1))
