"""Who sees whom: attention masks of a draft tree over committed rows, one per window size, built once a pass.

Shape letters: B batch rows, N nodes, S span (columns of the cache that a pass reads).
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Visible(NamedTuple):
    """What the layers of one window size read.

    Attributes:
        mask: additive, [B, 1, N, S - first]: 0 where a node sees a column, -inf elsewhere.
        first: first column that any node sees.
        window: their window, for attention that goes without the mask.
    """

    mask: Tensor
    first: int
    window: int | None = None


class Masks:
    """Masks of one pass.

    Args:
        visible_BNN: whether node i sees node j; each sees itself.
        depths_BN: a node's position is the row's committed length + its depth.
        lengths_B: committed tokens of each row, all of which every node sees.
        span: longest committed length + N.
        shortest: committed length that no row is below.
        dtype: of the masks.
    """

    def __init__(  # noqa: PLR0917 -- the geometry of a pass
        self,
        visible_BNN: Tensor,
        depths_BN: Tensor,
        lengths_B: Tensor,
        span: int,
        shortest: int,
        dtype: torch.dtype,
    ) -> None:
        width = depths_BN.shape[1]
        columns_S = torch.arange(span, device=lengths_B.device)
        node_BS = (columns_S - lengths_B[:, None]).clamp(0, width - 1)
        committed_BS = columns_S < lengths_B[:, None]
        self._visible_BNS = columns_seen(visible_BNN, lengths_B, span)
        self._positions_BN = lengths_B[:, None] + depths_BN
        self._positions_BS = torch.where(committed_BS, columns_S, self._positions_BN.gather(1, node_BS))
        self._dtype, self._shortest = dtype, shortest
        self._made: dict[int | None, Visible] = {}

    def of(self, window: int | None) -> Visible:
        """Return what layers with this window see: columns less than ``window`` positions away, or all."""
        if window not in self._made:
            first = 0 if window is None else max(0, self._shortest - window + 1)
            self._made[window] = Visible(self._mask(window, first), first, window)
        return self._made[window]

    def _mask(self, window: int | None, first: int) -> Tensor:
        visible_BNS = self._visible_BNS[:, :, first:]
        if window is not None:
            distance_BNS = self._positions_BN[:, :, None] - self._positions_BS[:, None, first:]
            visible_BNS = visible_BNS & (distance_BNS.abs() < window)
        return additive(visible_BNS, self._dtype)


def columns_seen(sees_BNM: Tensor, lengths_B: Tensor, span: int) -> Tensor:
    """Which columns each node sees, bool [B, N, S]: the committed ones, and behind them those of the nodes it sees.

    Args:
        sees_BNM: whether node i sees what stands in the j-th column behind the committed ones.
        lengths_B: committed columns of each row.
        span: S.
    """
    nodes, places = sees_BNM.shape[1:]
    place_BS = torch.arange(span, device=lengths_B.device) - lengths_B[:, None]
    inside_BS = (place_BS >= 0) & (place_BS < places)
    among_BNS = sees_BNM.gather(2, place_BS.clamp(0, places - 1)[:, None].expand(-1, nodes, -1))
    return (place_BS < 0)[:, None] | (inside_BS[:, None] & among_BNS)


def additive(seen_BNS: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to attention's logits, [B, 1, N, S]: 0 where a column is seen, -inf elsewhere."""
    mask = torch.zeros(seen_BNS.shape, dtype=dtype, device=seen_BNS.device)
    return mask.masked_fill_(~seen_BNS, float("-inf"))[:, None]
