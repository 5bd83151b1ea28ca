"""Tensors in 8-bit floats with one factor a block, as ``quant_method: fp8`` stores them: which factors are whose.

A matrix ``X.weight`` of type F8_E4M3 comes with ``X.weight_scale_inv``; a value is their product.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outrider.checkpoint.checkpoint import BlockScales, TensorInfo
from outrider.errors import CheckpointError

SUFFIX, BLOCK, FP8 = "_scale_inv", 128, "F8_E4M3"


def join_scales(tensors: Mapping[str, TensorInfo], config: Mapping[str, Any]) -> dict[str, TensorInfo]:
    """Return the tensors, those of factors joined to what they scale.

    Raises:
        CheckpointError: factors of nothing, or not one a block.
    """
    block = _block(config)
    joined = {name: info for name, info in tensors.items() if not name.endswith(SUFFIX)}
    for name, scales in tensors.items():
        if not name.endswith(SUFFIX):
            continue
        of = name.removesuffix(SUFFIX)
        found = joined.get(of)
        if found is None:
            raise CheckpointError(f"{scales.file} holds {name}, but no tensor {of} that it scales. Fetch it again.")
        wanted = tuple(-(-size // part) for size, part in zip(found.shape, block, strict=False))
        if len(found.shape) != len(block) or scales.shape != wanted:
            raise CheckpointError(
                f"{scales.file}: {name} has shape {list(scales.shape)}; expected {list(wanted)}, one factor for each "
                f"block of {block[0]} by {block[1]} of {of}, {list(found.shape)}."
            )
        joined[of] = replace(found, scales=BlockScales(scales, name, block))
    return joined


def _block(config: Mapping[str, Any]) -> tuple[int, int]:
    said = config.get("quantization_config")
    sizes = said.get("weight_block_size") if isinstance(said, Mapping) else None
    if sizes is None:
        return BLOCK, BLOCK
    match sizes:
        case [int(rows), int(columns)] if rows > 0 and columns > 0:
            return rows, columns
    raise CheckpointError(
        f"Config: expected quantization_config.weight_block_size to be two whole numbers above 0; found {sizes!r}."
    )
