"""Many blocks over one text in one pass: where their slots stand and what each sees.

The columns of a pass are the context keys of the whole text, then the slots of all blocks; a slot sees the context
before its own anchor and the slots of its own block, both as the layer's mask allows.
Shape letters: B blocks, N slots of all blocks together, S columns.
"""

import torch
from torch import Tensor

from outrider.models.dflash.config import LayerMask
from outrider.models.masks import Visible


class PackedBlocks:
    """The places of the blocks.

    Args:
        anchors_B: position of each block's anchor.
        size: slots of a block.
        length: tokens of the text.

    Attributes:
        positions_N: of the slots, in the text.
        span: columns of a pass.
    """

    def __init__(self, anchors_B: Tensor, size: int, length: int) -> None:
        slots = torch.arange(size, device=anchors_B.device)
        self.anchors_B = anchors_B
        self.positions_N = (anchors_B[:, None] + slots).flatten()
        self.span = length + len(self.positions_N)
        text_T = torch.arange(length, device=anchors_B.device)
        anchors_N = anchors_B.repeat_interleave(size)
        block_N = torch.arange(len(anchors_B), device=anchors_B.device).repeat_interleave(size)
        self._positions_S = torch.cat((text_T, self.positions_N))
        context_NT = text_T < anchors_N[:, None]
        self._seen_NS = torch.cat((context_NT, block_N[:, None] == block_N), 1)
        self._made: dict[LayerMask, Visible] = {}

    def visible(self, mask: LayerMask, dtype: torch.dtype) -> Visible:
        """Return what layers with this mask see."""
        if mask not in self._made:
            distance_NS = self.positions_N[:, None] - self._positions_S
            seen_NS = self._seen_NS
            if mask.window is not None:
                seen_NS = seen_NS & (distance_NS.abs() < mask.window)
            if mask.causal:
                seen_NS = seen_NS & (distance_NS >= 0)
            made = torch.zeros(seen_NS.shape, dtype=dtype, device=seen_NS.device)
            self._made[mask] = Visible(made.masked_fill_(~seen_NS, float("-inf"))[None, None], 0)
        return self._made[mask]
