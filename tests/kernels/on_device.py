"""Where the tests of Triton kernels run: on a GPU, and with TRITON_INTERPRET=1 wherever Triton is installed."""

import pytest
import torch

from outrider.kernels.launch import can_run, interpreted

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# The interpreter multiplies bfloat16 as if its bits were integers.
HALF = torch.float16 if interpreted() else torch.bfloat16
DTYPES = [torch.float32, HALF]
needs_triton = pytest.mark.skipif(not can_run(DEVICE), reason="needs a GPU, or Triton and TRITON_INTERPRET=1")


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Size of the difference over the size of what is wanted."""
    return float((found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-30))


def tolerance(dtype: torch.dtype) -> float:
    """Largest error: float32 keeps its digits, half precision rounds inputs and results."""
    return 2e-6 if dtype == torch.float32 else 6e-3
