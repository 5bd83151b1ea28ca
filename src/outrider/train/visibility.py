"""Which keys a slot sees, as a dense mask (any device) or as a block mask for flex attention (GPU). One rule for both.

Shape letters: B rows, Q slots of a row, S = T + Q keys: the context of the row, then the slots of all blocks.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from outrider.models.dflash.config import LayerMask
from outrider.train.flex import Rule, block_mask
from outrider.train.lesson import Blocks

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

Visible = "Tensor | BlockMask"
FAR = 1 << 30  # a window that hides nothing


def rule(blocks: Blocks, mask: LayerMask) -> Rule:
    """Return the rule (row, head, slot, key) -> whether the slot sees the key, for tensors of indices.

    What differs between layers and steps is held in tensors, so a compiled kernel serves them all.
    """
    positions_BS, documents_BS = blocks.positions_BS.int(), blocks.documents_BS.int()
    ends_BQ, size = blocks.ends_BQ.int(), blocks.ids_BAN.shape[2]
    context = positions_BS.shape[1] - ends_BQ.shape[1]
    # Filled on the device: a number that is copied there would make the host wait.
    window = torch.full((), FAR if mask.window is None else mask.window, device=ends_BQ.device, dtype=torch.int32)
    causal = torch.full((), mask.causal, device=ends_BQ.device)

    def sees(row: Tensor, _head: Tensor, slot: Tensor, key: Tensor) -> Tensor:
        own = context + slot
        distance = positions_BS[row, own] - positions_BS[row, key]
        before = (documents_BS[row, own] == documents_BS[row, key]) & (positions_BS[row, key] < ends_BQ[row, slot])
        beside = (key - context) // size == slot // size
        allowed = torch.where(key < context, before, beside)
        return allowed & (distance.abs() < window) & ((distance >= 0) | ~causal)

    return sees


def dense(blocks: Blocks, mask: LayerMask) -> Tensor:
    """Return the mask [B, 1, Q, S], true where a slot sees a key."""
    rows, slots, keys = (*blocks.ends_BQ.shape, blocks.positions_BS.shape[1])
    device = blocks.ends_BQ.device
    row_B, slot_Q, key_S = (torch.arange(count, device=device) for count in (rows, slots, keys))
    sees = rule(blocks, mask)
    return sees(row_B[:, None, None], row_B[:1], slot_Q[:, None], key_S)[:, None]


def sparse(blocks: Blocks, mask: LayerMask) -> "BlockMask":
    """Return the block mask of flex attention."""
    rows, slots = blocks.ends_BQ.shape
    return block_mask(rule(blocks, mask), rows, slots, blocks.positions_BS.shape[1], blocks.ends_BQ.device)


def visible(blocks: Blocks, layers: tuple[LayerMask, ...], *, flex: bool) -> "tuple[Tensor | BlockMask, ...]":
    """Return what each layer sees; equal layers share it."""
    made = {mask: sparse(blocks, mask) if flex else dense(blocks, mask) for mask in dict.fromkeys(layers)}
    return tuple(made[mask] for mask in layers)
