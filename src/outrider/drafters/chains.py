"""From the logits of a block to one chain a row: how sure the drafter is of each guess, then as many as are wanted.

A slot's own logits decide, or, where the drafter has a head that corrects by path, those with the correction for the
token before. The chances of drawn tokens depend on no draw: a chain may be cut by them and stays lossless
(docs/exactness.md), and what is cut off need not be drawn.
Shape letters: B rows, K slots that predict, C words of a slot to choose among, V words of the target.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isnan

import numpy as np
import torch
from torch import Tensor

from outrider.engine.interfaces import Slot
from outrider.engine.rules import draw
from outrider.engine.uniforms import DRAFT
from outrider.engine.words import best_word, best_words
from outrider.errors import UsageError
from outrider.models.dflash.heads import Correction
from outrider.models.dflash.network import DFlash, Draft

Choose = Callable[[int, Tensor, Tensor | None], Tensor]


@dataclass(slots=True)
class Chain:
    """One row's guesses.

    Attributes:
        tokens: target ids.
        chances: the drafter's own probability that each guess is right, those before it being right; of guesses that
            were not made, too.
        laws_KV: each token's law, where it was drawn.
    """

    tokens: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    laws_KV: Tensor | None = None


class Chains:
    """The chains of a batch. The device is asked twice for the rows of best words, and twice for those that draw.

    Args:
        network: the draft model.
        draft: its pass.
        slots: the rows; None for one that does not count, which like one without room gets an empty chain.
        depth: tokens that may be wanted, at most those of a block.
        sampled: draw the tokens of rows whose rules draw; otherwise take the best ones.
    """

    def __init__(self, network: DFlash, draft: Draft, slots: list[Slot | None], *, depth: int, sampled: bool) -> None:
        self._chains = [Chain() for _ in slots]
        running = {row: slot for row, slot in enumerate(slots) if slot is not None and slot.max_depth}
        drawing = {row: slot for row, slot in running.items() if sampled and not slot.rules.params.greedy}
        best = {row: slot for row, slot in running.items() if row not in drawing}
        if best:
            tokens_BK, chances_BK = _Rows.of(network, draft, best, depth).best()
            for row, tokens, chances in zip(best, tokens_BK.tolist(), chances_BK.tolist(), strict=True):
                self._chains[row] = Chain(tokens, chances)
        self._drawing, self._drawn = drawing, _Rows.of(network, draft, drawing, depth) if drawing else None
        if self._drawn is not None:
            # The best score of a corrected slot depends on the tokens drawn before, that of the slot alone does not.
            for (row, slot), chances in zip(drawing.items(), _sure(self._drawn.logits_BKV).tolist(), strict=True):
                _check_numbers(slot, chances)
                self._chains[row].chances = chances

    @property
    def chances(self) -> list[list[float]]:
        """Each row's chances (see ``Chain``)."""
        return [chain.chances for chain in self._chains]

    def take(self, count: int) -> list[Chain]:
        """Return the chains, drawn tokens for the first ``count`` slots alone."""
        if self._drawn is not None:
            tokens_BK, laws = self._drawn.draw(count)
            for row, tokens, laws_KV in zip(self._drawing, tokens_BK.tolist(), laws, strict=True):
                self._chains[row].tokens, self._chains[row].laws_KV = tokens, laws_KV
        return self._chains


def _sure(logits: Tensor) -> Tensor:
    """Probability of the best word, [..., C] to [...]."""
    return logits.softmax(-1).amax(-1)


def _check_numbers(slot: Slot, chances: list[float]) -> None:
    """Refuse to draw from what is no law; of best words nobody needs to ask, a wrong one is not accepted."""
    if any(map(isnan, chances)):
        raise UsageError(
            f"The draft model's logits at position {slot.position} are no finite numbers, and nothing can be drawn "
            "from them: it overflows in this dtype, or its weights are damaged. Take --dtype float32 or bfloat16."
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that choose in the same way."""

    network: DFlash
    slots: list[Slot]
    anchors_B1: Tensor
    hidden_BKH: Tensor
    logits_BKV: Tensor

    @classmethod
    def of(cls, network: DFlash, draft: Draft, slots: dict[int, Slot], depth: int) -> "_Rows":
        """Take some rows of a batch, and the first slots of each."""
        hidden_BKH, logits_BKV = draft.hidden_BKH[:, :depth], draft.logits_BKV[:, :depth]
        if len(slots) < len(logits_BKV):
            rows = torch.tensor(list(slots), device=network.device)
            hidden_BKH, logits_BKV = hidden_BKH[rows], logits_BKV[rows]
        anchors_B1 = torch.tensor([[slot.anchor] for slot in slots.values()], device=network.device)
        return cls(network, list(slots.values()), anchors_B1, hidden_BKH, logits_BKV)

    def best(self) -> tuple[Tensor, Tensor]:
        """The best tokens and their chances, [B, K] each."""
        correction, confidence = self.network.correction, self.network.confidence
        if correction is None:
            tokens_BK, chances_BK = self._target_ids(best_word(self.logits_BKV)), _sure(self.logits_BKV)
        else:
            chances: list[Tensor] = []

            def choose(_index: int, scores_BC: Tensor, _words_BC: Tensor | None) -> Tensor:
                chances.append(_sure(scores_BC))
                return best_word(scores_BC)

            tokens_BK = self._walk(correction, self.logits_BKV.shape[1], choose)
            chances_BK = torch.stack(chances, 1)
        if confidence is not None:  # a head that foresees acceptance is believed
            chances_BK = confidence(self.hidden_BKH, torch.cat((self.anchors_B1, tokens_BK[:, :-1]), 1))
        return tokens_BK, chances_BK

    def draw(self, count: int) -> tuple[Tensor, list[Tensor]]:
        """Tokens of the first ``count`` slots, [B, K], and for each row the laws they were drawn from, [K, V]."""
        uniforms = np.stack([slot.rules.uniforms.at(DRAFT, slot.position, count) for slot in self.slots])
        uniforms_BK = torch.from_numpy(uniforms).to(self.network.device)
        if self.network.correction is not None:
            return self._draw_by_path(self.network.correction, uniforms_BK)
        rows = zip(self.slots, self.logits_BKV[:, :count], strict=True)
        laws = [slot.rules.probabilities(logits_KC) for slot, logits_KC in rows]
        own_BK = torch.stack([draw(*row) for row in zip(laws, uniforms_BK, strict=True)])
        words_C = self.network.words
        if words_C is not None:
            laws = [self._of_target(law_KC, words_C.expand_as(law_KC)) for law_KC in laws]
        return self._target_ids(own_BK), laws

    def _draw_by_path(self, correction: Correction, uniforms_BK: Tensor) -> tuple[Tensor, list[Tensor]]:
        laws: list[Tensor] = []

        def choose(index: int, scores_BC: Tensor, words_BC: Tensor | None) -> Tensor:
            rows = enumerate(self.slots)
            law_BC = torch.cat([slot.rules.probabilities(scores_BC[row : row + 1]) for row, slot in rows])
            laws.append(law_BC if words_BC is None else self._of_target(law_BC, words_BC))
            return draw(law_BC, uniforms_BK[:, index])

        tokens_BK = self._walk(correction, uniforms_BK.shape[1], choose)
        return tokens_BK, list(torch.stack(laws, 1))

    def _walk(self, correction: Correction, count: int, choose: Choose) -> Tensor:
        """Go through the slots from left to right, each scored after the token chosen before it, and return these."""
        logits_BKC, own_BKC = self.logits_BKV[:, :count], None
        if correction.candidates is not None:
            logits_BKC, own_BKC = best_words(logits_BKC, correction.candidates)
        words_BKC = self._target_words(own_BKC)
        state, tokens = correction.start(len(self.slots)), [self.anchors_B1]
        for index in range(count):
            own_BC = None if own_BKC is None else own_BKC[:, index]
            bias_B1C, state = correction.step(self.hidden_BKH[:, index], tokens[-1], state, own_BC)
            words_BC = None if words_BKC is None else words_BKC[:, index]
            chosen_B1 = choose(index, logits_BKC[:, index] + bias_B1C[:, 0], words_BC)[:, None]
            tokens.append(chosen_B1 if words_BC is None else words_BC.gather(1, chosen_B1))
        return torch.cat(tokens[1:], 1)

    def _target_ids(self, own: Tensor) -> Tensor:
        return own if self.network.words is None else self.network.words[own]

    def _target_words(self, own_BKC: Tensor | None) -> Tensor | None:
        """Target ids of the words to choose among; None where these are all words of the target in their order."""
        if own_BKC is not None:
            return self._target_ids(own_BKC)
        words_C = self.network.words
        return None if words_C is None else words_C.expand_as(self.logits_BKV)

    def _of_target(self, law_NC: Tensor, words_NC: Tensor) -> Tensor:
        """Spread laws over all words of the target."""
        return law_NC.new_zeros(len(law_NC), self.network.target_vocab).scatter_(1, words_NC, law_NC)
