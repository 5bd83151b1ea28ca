"""Random weights: small models for tests and demos of shapes, and any model's shapes without its files."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor


class HasShapes(Protocol):
    """A configuration that names its tensors."""

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor, with its shape."""
        ...


def dummy_values(shapes: dict[str, tuple[int, ...]], device: torch.device) -> Callable[[str], Tensor]:
    """Return a reader of stand-ins: random ones, or on the meta device, where nothing is computed, shapes alone."""
    if device.type == "meta":
        return lambda name: torch.empty(shapes[name], device=device)
    return random_values(shapes, device=device)


def random_tensors(config: HasShapes, *, seed: int = 0) -> Callable[[str], Tensor]:
    """Return a reader that makes each tensor when asked; the same name always gives the same values.

    Matrices are scaled so that activations keep their size from layer to layer; norms lie around 1.
    """
    return random_values(config.tensor_shapes(), seed=seed)


def random_values(
    shapes: dict[str, tuple[int, ...]], *, seed: int = 0, device: torch.device | None = None
) -> Callable[[str], Tensor]:
    """Return such a reader of these tensors; made on the device, which gives it other values than a CPU would."""
    order = {name: index for index, name in enumerate(shapes)}

    def read(name: str) -> Tensor:
        generator = torch.Generator(device or "cpu").manual_seed(seed * 1_000_003 + order[name])
        values = torch.randn(shapes[name], generator=generator, device=device)
        if len(shapes[name]) == 1:
            return 1 + 0.1 * values if name.endswith("norm.weight") else 0.1 * values
        scaled: Tensor = values * float(shapes[name][1]) ** -0.5
        return scaled

    return read
