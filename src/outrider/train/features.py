"""The target's pass over packed rows: what its blocks say of every token.

A row of documents is a draft forest over nothing committed: each token sees the earlier ones of its own document, at
its own position.
Shape letters: B rows, T tokens of a row, F = taps * width, H width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from outrider.engine.tree import DraftTree
from outrider.models.decoder import Decoder
from outrider.models.layers import Mix
from outrider.train.batches import Batch
from outrider.train.flex import block_mask, flex_alone


@dataclass(frozen=True, slots=True)
class Read:
    """What the target says of a batch.

    Attributes:
        features_BTF: the taps side by side, in the drafter's order.
        hidden_BTH: what the target's head reads.
    """

    features_BTF: Tensor
    hidden_BTH: Tensor


class Features:
    """A target that reads batches of one shape.

    Args:
        target: the model whose text is wanted.
        taps: blocks whose outputs are wanted.
        rows: of a batch.
        row_length: tokens of a row.
        flex: whether its attention is a kernel over block masks, which knows no windows.
    """

    def __init__(
        self, target: Decoder, taps: tuple[int, ...], *, rows: int, row_length: int, flex: bool = False
    ) -> None:
        self._target, self._taps = target, taps
        self._flex = flex and not any(target.config.windows)
        self._cache = target.new_cache(slots=rows, max_len=row_length)
        self._lengths_B = torch.zeros(rows, dtype=torch.int64, device=target.device)

    def read(self, batch: Batch) -> Read:
        """Run the target over a batch."""
        rows, length = batch.tokens_BT.shape
        out = self._target.forward(
            _forest(batch),
            self._cache,
            slice(0, rows),
            self._lengths_B,
            span=length,
            taps=self._taps,
            mix=_mix(batch) if self._flex else None,
        )
        # The copy leaves inference mode: what is made within it cannot be kept for a backward pass.
        features_BTF = torch.cat([out.taps[tap] for tap in self._taps], -1)
        return Read(features_BTF, out.hidden_BNH)


def _mix(batch: Batch) -> Mix:
    """Attention over each document's earlier tokens by a kernel that leaves the rest of a row out."""
    documents_BT = batch.document_BT.int()
    rows, length = documents_BT.shape

    def sees(row: Tensor, _head: Tensor, token: Tensor, key: Tensor) -> Tensor:
        return (documents_BT[row, token] == documents_BT[row, key]) & (key <= token)

    mask = block_mask(sees, rows, length, length, documents_BT.device)
    return lambda query, key, value, _visible, _sinks: flex_alone(query, key, value, mask)


def _forest(batch: Batch) -> DraftTree:
    rows, length = batch.tokens_BT.shape
    earlier_TT = torch.ones(length, length, dtype=torch.bool, device=batch.tokens_BT.device).tril()
    return DraftTree(
        tokens_BN=batch.tokens_BT,
        parents_BN=torch.arange(-1, length - 1, device=batch.tokens_BT.device).clamp(min=0).expand(rows, length),
        depths_BN=batch.position_BT,
        visible_BNN=(batch.document_BT[:, :, None] == batch.document_BT[:, None]) & earlier_TT,
        counts_B=batch.tokens_BT.new_full((rows,), length),
        is_chain=False,
        kept=True,
    )
