"""Who sees whom: attention masks of a draft tree over committed rows, one per window size, built once a pass.

Shape letters: B batch rows, N nodes, S span (columns of the cache that a pass reads).
"""

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from outrider.kernels.tree_attention import Sight


class Visible:
    """What the layers of one window size read.

    Args:
        mask: additive, [B, 1, N, S - first]: 0 where a node sees a column, -inf elsewhere; or what makes it.
        first: first column that any node sees.
        window: their window, for attention that goes without the mask.
        sight: who sees whom among the nodes, for attention that goes without the mask; None where only a mask says it.
    """

    def __init__(
        self, mask: Tensor | Callable[[], Tensor], first: int, window: int | None = None, sight: Sight | None = None
    ) -> None:
        self._mask, self.first, self.window, self.sight = mask, first, window, sight

    @cached_property
    def mask(self) -> Tensor:
        """The mask, made when it is first wanted."""
        return self._mask if isinstance(self._mask, Tensor) else self._mask()

    def masked(self, mask: Tensor) -> "Visible":
        """Return the same columns under another mask, which alone says who sees whom."""
        return Visible(mask, self.first, self.window)


class Masks:
    """Masks of one pass, each made when a layer first wants it.

    Args:
        visible_BNN: whether node i sees node j; each sees itself.
        depths_BN: a node's position is the row's committed length + its depth.
        lengths_B: committed tokens of each row, all of which every node sees.
        span: longest committed length + N, or more.
        shortest: committed length that no row is below.
        dtype: of the masks.
        masked: attention goes by masks alone: a long text, of which a kernel for few nodes is no good.
    """

    def __init__(  # noqa: PLR0917 -- the geometry of a pass
        self,
        visible_BNN: Tensor,
        depths_BN: Tensor,
        lengths_B: Tensor,
        span: int,
        shortest: int,
        dtype: torch.dtype,
        *,
        masked: bool = False,
    ) -> None:
        self._masked = masked
        self._sight = Sight(visible_BNN, depths_BN, depths_BN, lengths_B)
        self._span, self._shortest, self._dtype = span, shortest, dtype
        self._made: dict[int | None, Visible] = {}

    def of(self, window: int | None) -> Visible:
        """Return what layers with this window see: columns less than ``window`` positions away, or all."""
        if window not in self._made:
            first = 0 if window is None else max(0, self._shortest - window + 1)
            sight = None if self._masked else self._sight
            self._made[window] = Visible(lambda: self._mask(window, first), first, window, sight)
        return self._made[window]

    @cached_property
    def _visible_BNS(self) -> Tensor:  # noqa: N802 -- names a tensor by its shape
        return columns_seen(self._sight.sees_BNM, self._sight.lengths_B, self._span)

    @cached_property
    def _positions_BS(self) -> Tensor:  # noqa: N802 -- names a tensor by its shape
        lengths_B1, depths_BN = self._sight.lengths_B[:, None], self._sight.depths_BN
        columns_S = torch.arange(self._span, device=lengths_B1.device)
        node_BS = (columns_S - lengths_B1).clamp(0, depths_BN.shape[1] - 1)
        return torch.where(columns_S < lengths_B1, columns_S, lengths_B1 + depths_BN.gather(1, node_BS))

    def _mask(self, window: int | None, first: int) -> Tensor:
        visible_BNS = self._visible_BNS[:, :, first:]
        if window is not None:
            positions_BN = self._sight.lengths_B[:, None] + self._sight.depths_BN
            distance_BNS = positions_BN[:, :, None] - self._positions_BS[:, None, first:]
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
