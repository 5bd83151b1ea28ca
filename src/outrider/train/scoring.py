"""Logits, loss and gradient of all slots in bounded memory: block by block, never more than a few at once.

The head is frozen, so the gradient that is wanted is that of the hidden states alone; it is taken of each chunk as
soon as its loss is known, and the chunk's logits are forgotten.
Shape letters: P blocks, C blocks of a chunk, K slots that predict, H hidden, V words, B rows, T tokens of a row.
"""

from collections.abc import Callable
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from outrider.models.decoder import Decoder
from outrider.train.features import Read
from outrider.train.lesson import UNLABELLED, Blocks
from outrider.train.losses import FOREIGN, Costs, Sums
from outrider.train.network import DraftNetwork

LOGITS = 1 << 27  # numbers of the logits of one chunk, at most: 512 MB in float32, and about three times that in all

Score = Callable[[Tensor, slice], tuple[Tensor, Tensor]]


class Scorer:
    """Compares guesses with labels.

    Args:
        network: whose head is used.
        target: whose law has a share in the loss, if any has.
        most: blocks of a batch, at most; chunks are as equal as they can be.
    """

    def __init__(self, network: DraftNetwork, target: Decoder, *, most: int) -> None:
        self._network, self._target = network, target
        config = network.config
        chunks = ceil(most * config.max_tokens * network.words / LOGITS)
        self._chunk = ceil(most / chunks)
        gpu = target.device.type == "cuda"  # where reading and writing logits once, not ten times, is worth a compiler
        self._weigh = torch.compile(self._weigh_hidden, dynamic=False) if gpu else self._weigh_hidden
        self._words_V: Tensor | None = None
        if config.draft_vocab_size is not None:
            d2t = network.weights()["d2t"]
            self._words_V = d2t + torch.arange(len(d2t), device=d2t.device)
            self._own_V = torch.full((config.vocab_size,), FOREIGN, device=d2t.device)
            self._own_V[self._words_V] = torch.arange(len(d2t), device=d2t.device)

    def score(self, hidden_PKH: Tensor, blocks: Blocks, read: Read, costs: Costs) -> tuple[Tensor, Sums]:
        """Return the sum of weighted costs, which has a gradient where ``hidden_PKH`` wants one, and the counts."""
        labels_PK = self._own(blocks.labels_PK)
        teacher_RH = read.hidden_BTH.flatten(0, 1) if costs.distillation else None

        def score(some_CKH: Tensor, part: slice) -> tuple[Tensor, Tensor]:
            missing = self._chunk - len(some_CKH)  # all chunks have one shape, so one kernel serves them
            labels_CK = functional.pad(labels_PK[part], (0, 0, 0, missing), value=UNLABELLED)
            law_CKV = None
            if teacher_RH is not None:
                law_CKV = self._law(teacher_RH[functional.pad(blocks.before_PK[part], (0, 0, 0, missing))])
            return self._weigh(functional.pad(some_CKH, (0, 0, 0, 0, 0, missing)), labels_CK, law_CKV, costs)

        nothing = Sums.nothing(self._network.config.max_tokens, hidden_PKH.device).values
        loss, values = _InChunks.apply(hidden_PKH, score, self._chunk, nothing)  # type: ignore[no-untyped-call]
        return loss, Sums(values)

    def _weigh_hidden(
        self, hidden_CKH: Tensor, labels_CK: Tensor, law_CKV: Tensor | None, costs: Costs
    ) -> tuple[Tensor, Tensor]:
        loss, sums = costs.weigh(self._network.logits(hidden_CKH), labels_CK, law_CKV)
        return loss, sums.values

    def _own(self, labels_PK: Tensor) -> Tensor:
        """Labels as the drafter's own head counts words."""
        if self._words_V is None:
            return labels_PK
        return self._own_V[labels_PK.clamp(min=0)].where(labels_PK >= 0, UNLABELLED)

    def _law(self, hidden_CKH: Tensor) -> Tensor:
        """The target's law over the drafter's words."""
        logits_CKV = self._target.logits(hidden_CKH)
        if self._words_V is not None:
            logits_CKV = logits_CKV[..., self._words_V]
        return logits_CKV.softmax(-1)


class _InChunks(torch.autograd.Function):
    """Sums a score over chunks; the gradient is ready when the forward pass is."""

    @staticmethod
    def forward(ctx: Any, hidden_PKH: Tensor, score: Score, chunk: int, nothing: Tensor) -> tuple[Tensor, Tensor]:
        wanted = hidden_PKH.requires_grad
        gradient_PKH = torch.zeros_like(hidden_PKH) if wanted else None
        total = hidden_PKH.new_zeros((), dtype=torch.promote_types(hidden_PKH.dtype, torch.float32))
        values = nothing
        for start in range(0, len(hidden_PKH), chunk):
            part = slice(start, start + chunk)
            with torch.set_grad_enabled(wanted):
                some_CKH = hidden_PKH[part].detach().requires_grad_(wanted)
                loss, counted = score(some_CKH, part)
            if gradient_PKH is not None:
                (gradient_PKH[part],) = torch.autograd.grad(loss, some_CKH)
            total, values = total + loss.detach(), values + counted
        ctx.gradient = gradient_PKH
        ctx.mark_non_differentiable(values)
        return total, values

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _values: Any) -> tuple[Tensor | None, None, None, None]:
        gradient = ctx.gradient
        return None if gradient is None else gradient * upstream.to(gradient.dtype), None, None, None
