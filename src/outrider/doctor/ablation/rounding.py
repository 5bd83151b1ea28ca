"""Numbers rounded to a coarser format and back."""

import torch
from torch import Tensor

from outrider.doctor.ablation.fault import Format

FLOATS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}
LEVELS = {"int8": 127, "int4": 7}
GROUP = 32  # neighbours that share a scale, as in GGUF's Q8_0 and Q4_0
LARGEST_FP8 = 448.0


def rounded(values: Tensor, form: Format) -> Tensor:
    """Round, in the values' own dtype; fp8 has one scale a tensor, whole numbers one a group of the last axis."""
    if form == "fp8":
        scale = values.abs().amax().clamp(min=1e-12) / LARGEST_FP8
        return (values / scale).to(FLOATS[form]).to(values.dtype) * scale
    if form in FLOATS:
        return values.to(FLOATS[form]).to(values.dtype)
    width = values.shape[-1]
    grouped = values.reshape(*values.shape[:-1], -1, GROUP if width % GROUP == 0 else width)
    scale = grouped.abs().amax(-1, keepdim=True).clamp(min=1e-12) / LEVELS[form]
    return ((grouped / scale).round() * scale).view_as(values)
