"""Transformers' Qwen3.5 with every internal float32 widened to float64, so that a test may ask for 1e-10."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest
import torch
from transformers.models.qwen3_5 import modeling_qwen3_5 as theirs


class _Wide(ModuleType):
    """``torch`` for the modelling file, whose single precision is double."""

    float32 = float = torch.float64

    def __getattr__(self, name: str) -> object:
        return getattr(torch, name)


@contextmanager
def doubled() -> Iterator[None]:
    """Within it Transformers' Qwen3.5 is made, and runs, in float64 throughout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs, "torch", _Wide("torch"))
        patch.setattr(torch.Tensor, "float", torch.Tensor.double)
        yield
