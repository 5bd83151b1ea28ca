"""Who sees whom: attention masks of a draft tree over committed rows, one per window size, built once a pass.

Shape letters: B batch rows, N nodes, S span (columns of the cache that a pass reads).
"""

import torch
from torch import Tensor

from outrider.engine.tree import DraftTree


class Masks:
    """Additive masks [B, 1, N, S]: 0 where a node sees a column, -inf elsewhere."""

    def __init__(self, tree: DraftTree, lengths_B: Tensor, span: int, dtype: torch.dtype) -> None:
        columns_S = torch.arange(span, device=lengths_B.device)
        node_BS = columns_S - lengths_B[:, None]
        inside_BS = (node_BS >= 0) & (node_BS < tree.width)
        node_BS = node_BS.clamp(0, tree.width - 1)
        among_BNS = tree.visible_BNN.gather(2, node_BS[:, None].expand(-1, tree.width, -1))
        committed_BS = columns_S < lengths_B[:, None]
        self._visible_BNS = committed_BS[:, None] | (inside_BS[:, None] & among_BNS)
        self._positions_BN = lengths_B[:, None] + tree.depths_BN
        self._positions_BS = torch.where(committed_BS, columns_S, self._positions_BN.gather(1, node_BS))
        self._dtype = dtype
        self._made: dict[int | None, Tensor] = {}

    def of(self, window: int | None) -> Tensor:
        """Return the mask of layers with this window: a column counts while 0 <= q - k < window."""
        if window not in self._made:
            visible = self._visible_BNS
            if window is not None:
                visible = visible & (self._positions_BN[:, :, None] - self._positions_BS[:, None] < window)
            mask = torch.zeros(visible.shape, dtype=self._dtype, device=visible.device)
            self._made[window] = mask.masked_fill_(~visible, float("-inf"))[:, None]
        return self._made[window]
