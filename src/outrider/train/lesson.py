"""What a block is shown and what it is asked: slots, positions, labels, and who sees whom.

The lesson that ``Lesson.served`` makes is what engines will do with the drafter. Any other one is a way in which
training goes wrong; probes and tests put such in on purpose.
Shape letters: B rows, T tokens of a row, A anchors of a row, N slots of a block, K slots that predict, Q = A * N,
S = T + Q keys (context, then slots), P blocks that there are.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.train.batches import Batch, DrawAnchors, stratified

UNLABELLED = -1
NO_DOCUMENT = -2  # of the slots of a block without an anchor; padding is document -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """How blocks are made of text.

    Attributes:
        block_size: slots of a block.
        guesses: slots that predict, the last ones.
        layers: who sees whom, a layer.
        mask_token: what stands in the masked slots.
        context_end: the context ends so many tokens behind the last one before the anchor; 0 is right, for the
            anchor's features do not exist when it drafts.
        label_shift: slots are asked for the token so many places further on; 0 is right.
        draw: chooses anchors.
    """

    block_size: int
    guesses: int
    layers: tuple[LayerMask, ...]
    mask_token: int
    context_end: int = 0
    label_shift: int = 0
    draw: DrawAnchors = stratified

    @classmethod
    def served(cls, config: DFlashConfig) -> Self:
        """Return what engines do with a drafter of this config."""
        return cls(
            block_size=config.block_size,
            guesses=config.max_tokens,
            layers=config.layers,
            mask_token=config.mask_token or 0,
        )


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a batch.

    Attributes:
        ids_BAN: tokens of the slots: anchor, then masks.
        positions_BS: of all keys.
        documents_BS: document of each context key; for a slot, that of its anchor.
        ends_BQ: position before which a slot sees the context.
        labels_PK: token that each slot is asked for, -1 for none.
        before_PK: row of the flattened batch [B * T] whose target output predicts the label.
    """

    ids_BAN: Tensor
    positions_BS: Tensor
    documents_BS: Tensor
    ends_BQ: Tensor
    labels_PK: Tensor
    before_PK: Tensor


def make_blocks(batch: Batch, lesson: Lesson) -> Blocks:
    """Spread the slots of all anchors of a batch."""
    column_BA = batch.anchors_BA.clamp(min=0)
    there_BA = batch.anchors_BA >= 0
    document_BA = batch.document_BT.gather(1, column_BA).where(there_BA, NO_DOCUMENT)
    position_BA = batch.position_BT.gather(1, column_BA)
    slots_N = torch.arange(lesson.block_size, device=batch.tokens_BT.device)
    ids_BAN = column_BA.new_full((*column_BA.shape, lesson.block_size), lesson.mask_token)
    ids_BAN[:, :, 0] = batch.tokens_BT.gather(1, column_BA)
    places_BQ = (position_BA[:, :, None] + slots_N).flatten(1)
    labels_PK, before_PK = _labels(batch, column_BA, lesson)
    return Blocks(
        ids_BAN,
        torch.cat((batch.position_BT, places_BQ), 1),
        torch.cat((batch.document_BT, document_BA.repeat_interleave(lesson.block_size, 1)), 1),
        (position_BA + lesson.context_end).repeat_interleave(lesson.block_size, 1),
        labels_PK,
        before_PK,
    )


def _labels(batch: Batch, column_BA: Tensor, lesson: Lesson) -> tuple[Tensor, Tensor]:
    """What the slots of the real blocks are asked for: tokens of the response, in the anchor's own document."""
    rows, length = batch.tokens_BT.shape
    device = column_BA.device
    column_P1 = column_BA.flatten()[batch.blocks_P, None]
    start_P1 = (
        (torch.arange(rows, device=device)[:, None] * length).expand_as(column_BA).flatten()[batch.blocks_P, None]
    )
    # A block of N slots asks for the K tokens behind its anchor, whichever slots it asks (``DFlashConfig.max_tokens``).
    wanted_PK = column_P1 + 1 + lesson.label_shift + torch.arange(lesson.guesses, device=device)
    there_PK = wanted_PK < length
    wanted_PK = start_P1 + wanted_PK.clamp(max=length - 1)
    document_T, anchor_P1 = batch.document_BT.flatten(), start_P1 + column_P1
    there_PK &= (document_T[wanted_PK] == document_T[anchor_P1]) & batch.response_BT.flatten()[wanted_PK]
    labels_PK = batch.tokens_BT.flatten()[wanted_PK].where(there_PK, UNLABELLED)
    return labels_PK, (wanted_PK - 1).clamp(min=0)
