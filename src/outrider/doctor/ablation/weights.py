"""A drafter's tensors with a fault in them, behind the same reader."""

import zlib

import torch
from torch import Tensor

from outrider.doctor.ablation.fault import Damage
from outrider.doctor.ablation.rounding import rounded
from outrider.models.dflash.config import DFlashConfig
from outrider.models.layers import ReadTensor

OUTPUTS = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
TURNED = ("q_proj.weight", "k_proj.weight", "q_norm.weight", "k_norm.weight", "q_proj.bias", "k_proj.bias")
LENT = ("lm_head.weight", "embed_tokens.weight")


def damaged_reader(read: ReadTensor, damage: Damage, config: DFlashConfig, head: Tensor | None) -> ReadTensor:
    """Return a reader of the damaged tensors.

    Args:
        read: of the healthy ones.
        damage: what is done to them.
        config: the drafter's, as it is run.
        head: the target's, [V, H], where the damage moves it.
    """

    def damaged(name: str) -> Tensor:
        if name in LENT and damage.head + damage.embedding != "sharedshared":
            return _lent(name, damage, config, head)
        tensor = read(name)
        if damage.dead_layer is not None and name in (f"layers.{damage.dead_layer}.{part}" for part in OUTPUTS):
            return torch.zeros_like(tensor)
        if damage.rotary_share < 1 and name.endswith(TURNED):
            return _reordered(tensor, damage.rotary_share, config.head_dim)
        return _worn(tensor, name, damage) if tensor.ndim > 1 else tensor

    return damaged


def _lent(name: str, damage: Damage, config: DFlashConfig, head: Tensor | None) -> Tensor:
    if name == LENT[0] and damage.head == "rolled":
        assert head is not None  # noqa: S101 -- who asks for it brings it
        return head.roll(1, 0)
    shape = (config.vocab_size, config.hidden_size)
    noise: Tensor = _noise(name, shape) * float(config.hidden_size) ** -0.5
    return noise


def _worn(tensor: Tensor, name: str, damage: Damage) -> Tensor:
    share = damage.weight_noise
    if share:
        values = tensor.float()
        return (1 - share) * values + share * values.std() * _noise(name, values.shape)
    return tensor if damage.weight_format is None else rounded(tensor.float(), damage.weight_format)


def _noise(name: str, shape: tuple[int, ...]) -> Tensor:
    """Numbers of the name's own, the same at every strength."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))


def _reordered(tensor: Tensor, share: float, size: int) -> Tensor:
    """Bring the pairs that a part of the head turns to where a whole head's are, those that stay behind them."""
    half, part = size // 2, int(size * share) // 2
    still = torch.arange(2 * part, size)
    first = torch.cat((torch.arange(part), still[: half - part]))
    second = torch.cat((torch.arange(part, 2 * part), still[half - part :]))
    heads = tensor.reshape(-1, size, *tensor.shape[1:])
    return heads[:, torch.cat((first, second))].reshape(tensor.shape)
