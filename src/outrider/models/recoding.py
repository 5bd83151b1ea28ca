"""Values as they were trained, from values as a converter changed them."""

import torch
from torch import Tensor

from outrider.checkpoint import TensorInfo
from outrider.checkpoint.checkpoint import TiledHeads


def scaled(values: Tensor, factors: Tensor, block: tuple[int, int]) -> Tensor:
    """Multiply each block of a matrix by its factor: float32.

    Args:
        values: [R, C] in 8-bit floats.
        factors: [R / block rows, C / block columns], rounded up.
        block: rows and columns of a block.
    """
    rows, columns = values.shape
    spread = factors.float().repeat_interleave(block[0], 0)[:rows].repeat_interleave(block[1], 1)[:, :columns]
    return values.float() * spread


def as_trained(values: Tensor, info: TensorInfo) -> Tensor:
    """Undo what the converter to GGUF did to a tensor."""
    if info.tiled_heads is not None:
        values = _grouped(values, info.tiled_heads)
    if info.negative_exp:
        values = torch.log(-values.float())
    if info.added:
        values = values.float() - info.added
    return values


def _grouped(values: Tensor, heads: TiledHeads) -> Tensor:
    """Put the value heads of each key head together."""
    if heads.columns:
        return _grouped(values.mT, TiledHeads(heads.key_heads, heads.group, heads.size, heads.first)).mT.contiguous()
    tiled = values[heads.first :]
    grouped = tiled.reshape(heads.group, heads.key_heads, heads.size, *tiled.shape[1:]).transpose(0, 1)
    return torch.cat((values[: heads.first], grouped.reshape(tiled.shape)))
