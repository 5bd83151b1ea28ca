"""What the small hybrid is taught: its teacher's law for every next token; its MTP head, the hybrid's own law.

Shape letters: B rows, T tokens of a row, M tokens of all rows, H hidden, V words.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from outrider.models.decoder import Decoder
from outrider.train.batches import Batch
from outrider.train.features import Features
from outrider.train.flex import block_mask
from recipes.small_hybrid.network import HybridNetwork, Places

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

TEXT = 0.1  # share of the text's own next word in the cost; the rest is the teacher's law
SECOND = 0.5  # weight of the MTP head's second step, which reads its own first
CHUNK = 8192  # tokens whose logits are in memory at once

Law = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Score:
    """Of one batch: what it costs, and how often the likeliest word was the text's own.

    Attributes:
        cost: with a gradient.
        surprise: cross-entropy against the text, nats a token.
        right: share of tokens guessed; of the MTP head, as often as the hybrid itself would.
    """

    cost: Tensor
    surprise: Tensor
    right: Tensor


@dataclass(frozen=True, slots=True)
class Aim:
    """What guesses are held against.

    Attributes:
        tokens_BT: the text.
        known_BT: whether what is guessed at a token is there, in the same document.
        far: how many tokens ahead it stands.
        law: from hidden states to logits.
        law_BTH: the states, each where the guess of the same token stands.
    """

    tokens_BT: Tensor
    known_BT: Tensor
    far: int
    law: Law
    law_BTH: Tensor


class Lesson:
    """Shows packed rows to network and teacher.

    Args:
        network: learns.
        teacher: its words are the network's.
        rows: of a batch.
        row_length: tokens of a row.
        mtp_rows: of them shown to the MTP head.
    """

    def __init__(self, network: HybridNetwork, teacher: Decoder, *, rows: int, row_length: int, mtp_rows: int) -> None:
        self._network, self._teacher, self._mtp_rows = network, teacher, mtp_rows
        self._gpu = teacher.device.type == "cuda"
        last = teacher.shape.num_layers - 1
        self._features = Features(teacher, (last,), rows=rows, row_length=row_length, flex=self._gpu)
        self._weigh = torch.compile(_weigh, dynamic=False) if self._gpu else _weigh

    def score(self, batch: Batch) -> tuple[Score, Score, Score]:
        """Return what the trunk's guesses cost, and those of the MTP head's two steps."""
        tokens_BT, document_BT = batch.tokens_BT, batch.document_BT
        teacher_BTH = self._features.read(batch).hidden_BTH.clone()  # out of inference mode
        places = self._network.places(batch.position_BT, self._visible(document_BT))
        hidden_BTH = self._network.model(tokens_BT, places)
        aim = Aim(tokens_BT, _inside(document_BT, 1), 1, self._teacher.logits, teacher_BTH)
        main = self._against(hidden_BTH, self._head(), aim)
        rows = slice(0, self._mtp_rows)
        tokens_BT, document_BT, state_BTH = tokens_BT[rows], document_BT[rows], hidden_BTH[rows].detach()
        some = self._network.places(batch.position_BT[rows], self._visible(document_BT))
        first, second = self._steps(tokens_BT, document_BT, state_BTH, some)
        return main, first, second

    def _steps(self, tokens_BT: Tensor, document_BT: Tensor, own_BTH: Tensor, places: Places) -> tuple[Score, Score]:
        """Let the MTP head guess two tokens on, against the law that the hybrid has there."""
        head_VH = self._head().detach()
        scores, state_BTH = [], own_BTH
        for step in (1, 2):
            embedded_BTH = functional.embedding(_ahead(tokens_BT, step), head_VH)
            state_BTH = self._network.mtp(embedded_BTH, state_BTH, places)
            known_BT = _inside(document_BT, step + 1)
            aim = Aim(tokens_BT, known_BT, step + 1, self._own_law, _ahead(own_BTH, step))
            scores.append(self._against(state_BTH, head_VH, aim))
        return scores[0], scores[1]

    def _own_law(self, hidden: Tensor) -> Tensor:
        head_VH = self._head().detach().to(torch.bfloat16 if self._gpu else torch.float32)
        return functional.linear(hidden.to(head_VH.dtype), head_VH).float()

    def _head(self) -> Tensor:
        return self._network.model.embed_tokens.weight

    def _against(self, hidden_BTH: Tensor, head_VH: Tensor, aim: Aim) -> Score:
        """Weigh guesses chunk by chunk; what a chunk's gradients need is computed again for them."""
        labels_M = _ahead(aim.tokens_BT, aim.far).flatten().where(aim.known_BT.flatten(), -1)
        hidden_MH, law_MH = hidden_BTH.flatten(0, 1), aim.law_BTH.flatten(0, 1)
        head_VH = head_VH.to(torch.bfloat16 if self._gpu else torch.float32)
        total = torch.zeros(4, device=hidden_MH.device)
        for begin in range(0, len(labels_M), CHUNK):
            part = slice(begin, begin + CHUNK)
            total = total + checkpoint(
                self._chunk, hidden_MH[part], head_VH, labels_M[part], aim.law, law_MH[part], use_reentrant=False
            )
        cost, surprise, right, count = total
        return Score(cost / count, surprise.detach() / count, right.detach() / count)

    def _chunk(self, hidden_MH: Tensor, head_VH: Tensor, labels_M: Tensor, law: Law, law_MH: Tensor) -> Tensor:
        with torch.no_grad():
            law_MV = law(law_MH).clone()  # outside of inference mode
        summed: Tensor = self._weigh(hidden_MH, head_VH, labels_M, law_MV)
        return summed

    def _visible(self, document_BT: Tensor) -> "Tensor | BlockMask":
        rows, length = document_BT.shape
        if not self._gpu:
            earlier = torch.ones(length, length, dtype=torch.bool, device=document_BT.device).tril()
            return ((document_BT[:, :, None] == document_BT[:, None]) & earlier)[:, None]

        def sees(row: Tensor, _head: Tensor, token: Tensor, key: Tensor) -> Tensor:
            return (document_BT[row, token] == document_BT[row, key]) & (key <= token)

        return block_mask(sees, rows, length, length, document_BT.device)


def _weigh(hidden_MH: Tensor, head_VH: Tensor, labels_M: Tensor, law_MV: Tensor) -> Tensor:
    """Return the sums [4] of cost, surprise, hits and tokens."""
    logits_MV = functional.linear(hidden_MH.to(head_VH.dtype), head_VH).float()
    log_MV, aim_MV = logits_MV.log_softmax(-1), law_MV.log_softmax(-1)
    known_M = labels_M >= 0
    surprise_M = -log_MV.gather(1, labels_M.clamp(min=0)[:, None])[:, 0]
    apart_M = (aim_MV.exp() * (aim_MV - log_MV)).sum(-1)
    cost_M = TEXT * surprise_M + (1 - TEXT) * apart_M
    right_M = logits_MV.argmax(-1) == law_MV.argmax(-1)
    return torch.stack([(values * known_M).sum() for values in (cost_M, surprise_M, right_M.float(), known_M.float())])


def _ahead(values: Tensor, far: int) -> Tensor:
    """Return what stands ``far`` tokens on; anything at the row's end."""
    return torch.roll(values, -far, 1)


def _inside(document_BT: Tensor, far: int) -> Tensor:
    """Say which tokens have one ``far`` on in the same document."""
    same = (document_BT == _ahead(document_BT, far)) & (document_BT >= 0)
    same[:, document_BT.shape[1] - far :] = False
    return same
