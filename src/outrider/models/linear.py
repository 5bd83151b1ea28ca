"""Linear layers, packed for the device they run on: the fastest exact one is chosen here, in one place.

On a CPU the plain layer wastes most of the memory bandwidth when a pass has few rows, which is all that
speculative decoding does: oneDNN's packed weights take half its time for 8 rows (docs/benchmarks.md). With AVX2,
packed fp32 rows are also the same to the last bit whatever their number (docs/exactness.md).
"""

import platform
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from outrider.errors import UsageError
from outrider.kernels.launch import can_run
from outrider.kernels.skinny import MOST, SCALE_BLOCK, dequantised, quantised, skinny

# Packing chooses its blocking by a row-count hint; from 4 on a row's result no longer depends on the
# number of rows, and 32 was the fastest hint for 1 to 32 rows on the machine of docs/benchmarks.md.
PACK_ROWS = 32
MOST_NARROW = 256  # rows of float8 weights by the kernel; above, weights are widened first


class Linear(Protocol):
    """y = x W^T + b."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Map [R, in] to [R, out]."""
        ...


class DenseLinear:
    """Weights as they are: any device, any float type."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self._bias = weight, bias

    def __call__(self, rows: Tensor) -> Tensor:
        """Map [R, in] to [R, out]."""
        return functional.linear(rows, self.weight, self._bias)


class PackedLinear:
    """fp32 weights in oneDNN's blocked layout (x86-64 CPUs)."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, PACK_ROWS)  # noqa: SLF001 -- the op torch.compile emits
        self._bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        """Map [R, in] to [R, out]."""
        linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 -- the op torch.compile emits
        result: Tensor = linear(rows, self._weight, self._bias, "none", [], "")
        return result


class Half16Linear:
    """fp16 weights, fp32 activations and sums (FBGEMM, x86-64 CPUs)."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)

    def __call__(self, rows: Tensor) -> Tensor:
        """Map [R, in] to [R, out]."""
        result: Tensor = torch.ops.quantized.linear_dynamic_fp16(rows, self._packed)
        return result


class SkinnyLinear:
    """Half-precision weights on a GPU: few rows by a kernel that reads weights as fast as memory allows."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self._bias = weight.contiguous(), bias

    def __call__(self, rows: Tensor) -> Tensor:
        """Map [R, in] to [R, out]."""
        if len(rows) > MOST:
            return functional.linear(rows, self.weight, self._bias)
        return skinny(rows, self.weight, self._bias)

    def can_gate(self, rows: int) -> bool:
        """Whether ``gated`` takes so many rows."""
        return rows <= MOST and self._bias is None

    def gated(self, rows: Tensor) -> Tensor:
        """Map [R, in] to silu(gate) * up, [R, out / 2], gates being the first half of the outputs."""
        return skinny(rows, self.weight, gated=True)


class Float8Linear(SkinnyLinear):
    """float8 weights with one scale a block of 128 by 128 (GPU); outputs that fill no block stay in half precision."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._whole = len(weight) // SCALE_BLOCK * SCALE_BLOCK
        super().__init__(weight[self._whole :].clone(), None if bias is None else bias[self._whole :])
        self._narrow, self._scale = quantised(weight[: self._whole])
        self._narrow_bias = None if bias is None else bias[: self._whole]

    def __call__(self, rows: Tensor) -> Tensor:
        """Map [R, in] to [R, out]."""
        outputs = self._whole + len(self.weight)
        if len(rows) > MOST_NARROW:
            full = torch.cat((dequantised(self._narrow, self._scale).to(rows.dtype), self.weight))
            bias = None if self._bias is None else torch.cat((self._narrow_bias, self._bias))  # type: ignore[arg-type]
            return functional.linear(rows, full, bias)
        result = rows.new_empty(len(rows), outputs)
        skinny(rows, self._narrow, self._narrow_bias, self._scale, into=result[:, : self._whole])
        if len(self.weight):
            skinny(rows, self.weight, self._bias, into=result[:, self._whole :])
        return result

    def can_gate(self, rows: int) -> bool:
        """Whether ``gated`` takes so many rows."""
        return rows <= MOST_NARROW and self._narrow_bias is None and not len(self.weight)

    def gated(self, rows: Tensor) -> Tensor:
        """Map [R, in] to silu(gate) * up, [R, out / 2], gates being the first half of the outputs."""
        return skinny(rows, self._narrow, scale=self._scale, gated=True)


def pack(weight: Tensor, bias: Tensor | None, dtype: torch.dtype, device: torch.device) -> Linear:
    """Return the fastest exact layer for weights of ``dtype`` on ``device``.

    Args:
        weight: [out, in], any float type, on the CPU.
        bias: [out] or None.
        dtype: float16 on a CPU keeps fp16 weights under fp32 activations; float8 (GPU) under bfloat16 ones.
        device: where it will run.
    """
    if device.type == "cpu" and dtype == torch.float16:
        if "fbgemm" not in torch.backends.quantized.supported_engines:
            raise UsageError(
                "dtype float16 on this CPU: PyTorch has no packed fp16 layer here (FBGEMM, x86-64); "
                "use float32 or bfloat16."
            )
        return Half16Linear(weight.float(), None if bias is None else bias.float())
    if dtype == torch.float8_e4m3fn:
        if not can_run(device):
            raise UsageError(f"dtype float8 needs a GPU with Triton, found {device}; use float32 or bfloat16.")
        bias = None if bias is None else bias.to(device=device, dtype=torch.bfloat16)
        return Float8Linear(weight.to(device=device, dtype=torch.bfloat16), bias)
    weight = weight.to(device=device, dtype=dtype)
    bias = None if bias is None else bias.to(device=device, dtype=dtype)
    if device.type == "cpu" and dtype == torch.float32 and can_pack():
        return PackedLinear(weight, bias)
    if device.type == "cuda" and can_run(device) and dtype in {torch.bfloat16, torch.float16}:
        return SkinnyLinear(weight, bias)
    return DenseLinear(weight, bias)


def can_pack() -> bool:
    """Whether this machine's torch has the packed fp32 layer."""
    return torch._C._has_mkldnn and platform.machine() in {"x86_64", "AMD64"}  # noqa: SLF001 -- what torch.backends.mkldnn asks
