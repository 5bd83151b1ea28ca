"""Tiny drafters for the tests of exports: configs, and random tensors for them."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from outrider.models.config import Rope
from outrider.models.dflash.config import DFlashConfig, LayerMask

SLIDING, FULL = LayerMask(12, causal=True), LayerMask(None, causal=False)
YARN = Rope(
    700.0,
    "yarn",
    {"factor": 2.0, "original_max_position_embeddings": 256, "beta_fast": 32.0, "beta_slow": 1.0},
)
TINY = DFlashConfig(
    vocab_size=265,  # of tests/tiny_model.py's tokenizer
    hidden_size=32,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    intermediate_size=48,
    max_positions=512,
    norm_eps=1e-5,
    rope=Rope(700.0),
    layers=(SLIDING, FULL, SLIDING),
    block_size=6,
    mask_token=264,
    taps=(0,),
    target_hidden_size=32,
    num_target_layers=2,
)


def random_tensors(config: DFlashConfig, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = config.tensor_shapes()
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    if "d2t" in shapes:  # every third word, as offsets from the drafter's own
        tensors["d2t"] = 2 * torch.arange(*shapes["d2t"])
    return tensors


def as_read(config: DFlashConfig, origin: str) -> DFlashConfig:
    """What a reader can know: z-lab's format alone says how deep the target is."""
    depth = config.num_target_layers if origin == "z-lab" else None
    return replace(config, origin=origin, num_target_layers=depth)


def as_stored(tensors: Mapping[str, Tensor], dtype: str, *, vectors: bool = True) -> dict[str, Tensor]:
    """Rounded to a dtype; ``vectors`` whether those are rounded too."""
    kind = getattr(torch, dtype)
    return {
        name: value.to(kind) if value.is_floating_point() and (value.ndim > 1 or vectors) else value
        for name, value in tensors.items()
    }
