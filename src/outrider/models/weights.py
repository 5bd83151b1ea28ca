"""The values of one tensor of a checkpoint, as a PyTorch tensor on the CPU.

Files are mapped, not loaded, and quantised blocks are turned into numbers a slice at a time, so
the peak is the result itself. Knows no module: who wants which tensor is the caller's affair.
"""

from collections.abc import Callable
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from outrider.checkpoint import Checkpoint, TensorInfo
from outrider.checkpoint.fp8 import FP8, SUFFIX
from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.recoding import as_trained, scaled

FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
PLAIN = FLOATS | {"I32": torch.int32, "I64": torch.int64}  # stored as they are, not in blocks; integers are token ids
# Measured on 2 cores: slices of 1/8 to 1/2 M values stay in the cache; smaller ones cost calls.
SLICE_VALUES = 1 << 17


def read_tensor(checkpoint: Checkpoint, name: str) -> Tensor:
    """Return the tensor called ``name``, in Hugging Face's layout.

    Floats and token ids keep their stored type and may be views of the mapped file; quantised ones are float32.

    Raises:
        CheckpointError: there is no such tensor, or its bytes are damaged or gone.
        UnsupportedError: its storage type is not read.
    """
    if name not in checkpoint.tensors:
        raise CheckpointError(f"{checkpoint.source.path} has no tensor {name}; its config calls for one.")
    info = checkpoint.tensors[name]
    try:
        tensor = _from_safetensors(info, info.stored_name or name) if info.offset is None else _from_gguf(info)
        if info.scales is not None:
            factors = _from_safetensors(info.scales.info, info.scales.name)
            tensor = scaled(tensor, factors, info.scales.block)
    except OSError as error:
        raise CheckpointError(f"Cannot read {info.file}: {error.strerror or error}.") from error
    _check(tensor, info, name)
    return tensor


def _check(tensor: Tensor, info: TensorInfo, name: str) -> None:
    if tuple(tensor.shape) != info.shape:
        raise CheckpointError(
            f"{info.file} changed while it was read: {name} had shape {list(info.shape)}, now {list(tensor.shape)}."
        )
    _check_finite(tensor, info, name)


def _check_finite(tensor: Tensor, info: TensorInfo, name: str) -> None:
    # NaN and infinity show in the extremes, which cost no tensor of flags as isfinite would.
    if tensor.numel() and not all(extreme.isfinite() for extreme in tensor.aminmax()):
        raise CheckpointError(f"{info.file} is damaged: {name} holds values that are not finite. Fetch it again.")


def _from_safetensors(info: TensorInfo, name: str) -> Tensor:
    from safetensors import SafetensorError, safe_open

    if info.dtype not in PLAIN and not (info.dtype == FP8 and info.scales is not None):
        raise UnsupportedError(
            f"{info.file}: {name} is stored as {info.dtype}, which is not read. Read are {', '.join(PLAIN)}, and "
            f"{FP8} with one factor a block ({name}{SUFFIX})."
        )
    try:
        with safe_open(info.file, framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
    except SafetensorError as error:
        raise CheckpointError(f"{info.file} is damaged: {error}. Fetch it again.") from error
    return tensor


def row_reader(checkpoint: Checkpoint, name: str) -> Callable[[Tensor], Tensor]:
    """Return a look-up of a matrix's rows that leaves the matrix in its file.

    An embedding table is as large as a head and is read a few rows at a time; on a CPU it need not be held.
    The look-up maps ids, int64 of any shape, to rows [..., width] in the stored type (quantised: float32).

    Raises:
        CheckpointError: as `read_tensor`; for quantised rows not before a damaged one is looked up.
    """
    info = checkpoint.tensors[name]
    if info.offset is None or info.dtype in FLOATS:
        table = read_tensor(checkpoint, name)  # a view of the mapped file
        return lambda ids: functional.embedding(ids, table)
    rows = _rows(info)

    def look_up(ids: Tensor) -> Tensor:
        chosen = rows[ids.flatten().numpy()]
        values = _dequantise(chosen, info.dtype)
        _check_finite(values, info, name)
        return values.view(*ids.shape, -1)

    return look_up


def _from_gguf(info: TensorInfo) -> Tensor:
    rows = _rows(info)
    if info.interleaved_heads:
        rows = _uninterleave(rows, info)
    if info.dtype in PLAIN:
        values = torch.from_numpy(rows).view(PLAIN[info.dtype]).reshape(info.shape)
    else:
        values = _dequantise(rows, info.dtype).view(info.shape)
    return as_trained(values, info)


def _rows(info: TensorInfo) -> NDArray[np.uint8]:
    """Map the tensor's bytes, one row of weights a row."""
    num_rows = prod(info.shape[:-1])
    try:
        # Copy-on-write, because PyTorch wants memory that may be written.
        memory = np.memmap(info.file, np.uint8, "c", offset=info.offset or 0, shape=info.nbytes)
    except ValueError as error:
        raise CheckpointError(f"{info.file} was cut short while it was read. Fetch it again.") from error
    return np.asarray(memory).reshape(num_rows, -1)


def _uninterleave(rows: NDArray[np.uint8], info: TensorInfo) -> NDArray[np.uint8]:
    """Put rotary pairs half a head apart again; the converter for GGUF stored them side by side.

    Whole rows move (for a bias: whole values), so blocks stay blocks.
    """
    num_values = info.shape[0]
    pairs = rows.reshape(info.interleaved_heads, num_values // info.interleaved_heads // 2, 2, -1)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def _dequantise(rows: NDArray[np.uint8], dtype: str) -> Tensor:
    """Turn rows of blocks into rows of float32."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    kind = GGMLQuantizationType[dtype]
    block_size, block_bytes = GGML_QUANT_SIZES[kind]
    blocks = rows.reshape(-1, block_bytes)
    result = torch.empty(len(rows), len(blocks) // max(len(rows), 1) * block_size)
    values = result.numpy().reshape(-1, block_size)
    step = SLICE_VALUES // block_size
    with np.errstate(all="ignore"):  # damaged scales overflow here and are refused by _check_finite
        for start in range(0, len(blocks), step):
            part = blocks[start : start + step]
            # One long row: the package works on 16 rows at a time, too few to be quick.
            numbers = dequantize(part.reshape(1, -1), kind)
            values[start : start + step] = numbers.reshape(-1, block_size)
    return result
