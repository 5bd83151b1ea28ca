"""Linear layers, packed for the device they run on.

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

# Packing chooses its blocking by a row-count hint; from 4 on a row's result no longer depends on the
# number of rows, and 32 was the fastest hint for 1 to 32 rows on the machine of docs/benchmarks.md.
PACK_ROWS = 32


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


def pack(weight: Tensor, bias: Tensor | None, dtype: torch.dtype, device: torch.device) -> Linear:
    """Return the fastest exact layer for weights of ``dtype`` on ``device``.

    Args:
        weight: [out, in], any float type, on the CPU.
        bias: [out] or None.
        dtype: float16 on a CPU keeps fp16 weights under fp32 activations.
        device: where it will run.
    """
    if device.type == "cpu" and dtype == torch.float16:
        if "fbgemm" not in torch.backends.quantized.supported_engines:
            raise UsageError(
                "dtype float16 on this CPU: PyTorch has no packed fp16 layer here (FBGEMM, x86-64); "
                "use float32 or bfloat16."
            )
        return Half16Linear(weight.float(), None if bias is None else bias.float())
    weight = weight.to(device=device, dtype=dtype)
    bias = None if bias is None else bias.to(device=device, dtype=dtype)
    if device.type == "cpu" and dtype == torch.float32 and can_pack():
        return PackedLinear(weight, bias)
    return DenseLinear(weight, bias)


def can_pack() -> bool:
    """Whether this machine's torch has the packed fp32 layer."""
    return torch._C._has_mkldnn and platform.machine() in {"x86_64", "AMD64"}  # noqa: SLF001 -- what torch.backends.mkldnn asks
