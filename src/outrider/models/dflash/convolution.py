"""DFlash2's dynamic convolution: a short causal kernel over the block, made from the sublayer's own input.

    y[t, c] = sum over taps d of (base[d, c] + dynamic[t, d, c // group]) * x[t - d, c],   zero before the block

once on the way into a sublayer and once on the way out, both kernels from one projection of the input. Context keys
are not convolved. Source: z-lab's DFlash2 release (dflash 0.1.0).
Shape letters: B batch rows, N slots, H hidden, T taps, C groups of channels.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from outrider.models.dflash.config import Convolution, DFlashConfig
from outrider.models.layers import BlockReader
from outrider.models.linear import Linear

Sublayer = Callable[[Tensor], Tensor]


class Around(Protocol):
    """What stands around a sublayer."""

    def __call__(self, normed_BNH: Tensor, sublayer: Sublayer) -> Tensor:
        """Run the sublayer on the normed input; return what is added to the residual."""
        ...


class Convolved(NamedTuple):
    """What stands around the two sublayers of a layer."""

    attention: Around
    mlp: Around


def bare(normed_BNH: Tensor, sublayer: Sublayer) -> Tensor:
    """Run the sublayer with nothing around it."""
    return sublayer(normed_BNH)


class DynamicConvolution:
    """The convolution around one sublayer.

    Args:
        shape: taps and group.
        base_2TH: fixed kernels of the way in and the way out.
        projection: input [R, H] to the dynamic kernels, [R, 2 * T * C].
    """

    def __init__(self, shape: Convolution, base_2TH: Tensor, projection: Linear) -> None:
        self._shape, self._base_2TH, self._projection = shape, base_2TH, projection

    def __call__(self, normed_BNH: Tensor, sublayer: Sublayer) -> Tensor:
        """Convolve, run the sublayer, convolve."""
        batch, slots, hidden = normed_BNH.shape
        groups = hidden // self._shape.group
        kernels = self._projection(normed_BNH.reshape(-1, hidden))
        into, out = kernels.view(batch, slots, 2, self._shape.taps, groups).unbind(2)
        return self._convolve(sublayer(self._convolve(normed_BNH, into, 0)), out, 1)

    def _convolve(self, values_BNH: Tensor, dynamic_BNTC: Tensor, side: int) -> Tensor:
        kernel_BNTH = self._base_2TH[side] + dynamic_BNTC.repeat_interleave(self._shape.group, -1)
        slots, taps = values_BNH.shape[1], self._shape.taps
        padded = functional.pad(values_BNH, (0, 0, taps - 1, 0))
        shifted = [padded[:, taps - 1 - back : taps - 1 - back + slots] for back in range(taps)]
        return (kernel_BNTH * torch.stack(shifted, 2)).sum(2)


def read_convolutions(config: DFlashConfig, reader: BlockReader) -> list[Convolved]:
    """Return what stands around the sublayers of each layer."""
    shape = config.convolution
    if shape is None:
        return [Convolved(bare, bare)] * config.num_layers

    def read(name: str) -> DynamicConvolution:
        return DynamicConvolution(
            shape, reader.vector(f"{name}.base_kernel"), reader.linear(f"{name}.kernel_projection")
        )

    return [
        Convolved(read(f"layers.{layer}.attention_conv"), read(f"layers.{layer}.mlp_conv"))
        for layer in range(config.num_layers)
    ]
