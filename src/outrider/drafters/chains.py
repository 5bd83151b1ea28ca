"""From the logits of a block to one chain a row: its tokens, how sure the drafter is, the law they were drawn from.

A slot's own logits decide, or, where the drafter has a head that corrects by path, those with the correction for the
token before. The chances of drawn tokens depend on no draw: a chain may be cut by them and stays lossless
(docs/exactness.md).
Shape letters: B batch rows, K slots that predict, C candidates of a slot, V words of the target.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from outrider.engine.interfaces import Slot
from outrider.engine.rules import Rules, draw
from outrider.engine.uniforms import DRAFT
from outrider.engine.words import best_word
from outrider.models.dflash.network import DFlash, Draft


@dataclass(slots=True)
class Chain:
    """One row's guesses.

    Attributes:
        tokens: target ids.
        chances: the drafter's own probability that each guess is right, those before it being right.
        laws: [V] each token's law, where it was drawn.
    """

    tokens: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    laws: list[Tensor] = field(default_factory=list)


def chains(network: DFlash, draft: Draft, slots: list[Slot | None], *, depth: int, sampled: bool) -> list[Chain]:
    """Return a chain of ``depth`` tokens a row.

    Args:
        network: the draft model.
        draft: its pass.
        slots: the rows; None for a row that does not count.
        depth: tokens wanted, at most those of a block.
        sampled: draw the tokens of rows whose rules draw; otherwise take the best ones.
    """
    drawing = [slot.rules if slot and sampled and not slot.rules.params.greedy else None for slot in slots]
    if network.correction is None and not any(drawing):
        return _best(network, draft.logits_BKV[:, :depth])
    return _Walk(network, draft, slots, drawing).run(depth)


def _best(network: DFlash, logits_BKV: Tensor) -> list[Chain]:
    """The best word of each slot, all slots at once."""
    best_BK = best_word(logits_BKV)
    chances_BK = (logits_BKV.gather(-1, best_BK[..., None])[..., 0] - logits_BKV.logsumexp(-1)).exp()
    tokens_BK = best_BK if network.words is None else network.words[best_BK]
    return [Chain(tokens, chances) for tokens, chances in zip(tokens_BK.tolist(), chances_BK.tolist(), strict=True)]


class _Walk:
    """Goes through the slots of a block from left to right, all rows at once."""

    def __init__(self, network: DFlash, draft: Draft, slots: list[Slot | None], drawing: list[Rules | None]) -> None:
        self._network, self._draft, self._drawing = network, draft, drawing
        self._positions = [slot.position if slot else 0 for slot in slots]
        anchors = [slot.anchor if slot else 0 for slot in slots]
        self._previous_B1 = torch.tensor(anchors, device=network.device)[:, None]
        self._state = None if network.correction is None else network.correction.start(len(slots))
        self._chains = [Chain() for _ in slots]
        self._vocab = network.target_vocab

    def run(self, depth: int) -> list[Chain]:
        before = []
        for index in range(depth):
            before.append(self._previous_B1)
            scores_BC, words_BC = self._scores(index)
            chosen_B = self._choose(index, scores_BC, words_BC)
            self._previous_B1 = words_BC.gather(1, chosen_B[:, None])
            for chain, token in zip(self._chains, self._previous_B1[:, 0].tolist(), strict=True):
                chain.tokens.append(token)
        self._foresee(torch.cat(before, 1))
        return self._chains

    def _scores(self, index: int) -> tuple[Tensor, Tensor]:
        """Scores of one slot's words and their target ids, both [B, C]."""
        network, correction = self._network, self._network.correction
        scores_BC = self._draft.logits_BKV[:, index]
        own_BC = None
        if correction is not None and self._state is not None:
            if correction.candidates is not None:
                scores_BC, own_BC = scores_BC.topk(correction.candidates, -1)
            hidden_BH = self._draft.hidden_BKH[:, index]
            bias_B1C, self._state = correction.step(hidden_BH, self._previous_B1, self._state, own_BC)
            scores_BC = scores_BC + bias_B1C[:, 0]
        if own_BC is None:
            own_BC = torch.arange(scores_BC.shape[1], device=network.device).expand_as(scores_BC)
        return scores_BC, own_BC if network.words is None else network.words[own_BC]

    def _choose(self, index: int, scores_BC: Tensor, words_BC: Tensor) -> Tensor:
        chosen_B = scores_BC.argmax(-1)
        unary_B = self._draft.logits_BKV[:, index]
        sure_B = (unary_B.amax(-1) - unary_B.logsumexp(-1)).exp().tolist()
        best_B = (scores_BC.amax(-1) - scores_BC.logsumexp(-1)).exp().tolist()
        for row, (rules, chain) in enumerate(zip(self._drawing, self._chains, strict=True)):
            # The best score of a corrected slot depends on the tokens drawn before, that of the slot alone does not.
            chain.chances.append(sure_B[row] if rules else best_B[row])
            if rules is not None:
                law_C = rules.probabilities(scores_BC[row : row + 1])
                uniform = rules.uniforms.at(DRAFT, self._positions[row] + index, 1)
                chosen_B[row] = draw(law_C, torch.from_numpy(uniform.copy()).to(law_C.device))[0]
                chain.laws.append(law_C.new_zeros(self._vocab).scatter_(0, words_BC[row], law_C[0]))
        return chosen_B

    def _foresee(self, before_BK: Tensor) -> None:
        """Where the drafter has a head that foresees acceptance, it is believed, but for drawn tokens."""
        if self._network.confidence is None:
            return
        hidden_BKH = self._draft.hidden_BKH[:, : before_BK.shape[1]]
        foreseen = self._network.confidence(hidden_BKH, before_BK).tolist()
        for chain, chances, rules in zip(self._chains, foreseen, self._drawing, strict=True):
            if rules is None:
                chain.chances = chances
