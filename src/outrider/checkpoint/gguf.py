"""A GGUF file as a checkpoint: its header read, checked, and put into Hugging Face's words.

Everything that can be told from the header is checked here, so that a damaged file is refused
before the first value is read.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.checkpoint.checkpoint import Checkpoint, TensorInfo
from outrider.checkpoint.gguf_config import config_from_metadata
from outrider.checkpoint.gguf_header import Header, RawTensor, read_gguf_header
from outrider.checkpoint.gguf_hybrid import ARCHITECTURE, hybrid_config, hybrid_tensors
from outrider.checkpoint.gguf_names import ARCHITECTURES, STORED_TYPES, hugging_face_name
from outrider.checkpoint.gguf_values import Values
from outrider.checkpoint.source import Source
from outrider.errors import CheckpointError, UnsupportedError


def open_gguf(source: Source) -> Checkpoint:
    """Read the header of the model ``source.path``.

    Raises:
        CheckpointError: missing, not GGUF, truncated, corrupt or contradictory.
        UnsupportedError: a version, architecture, part or storage type that is not read.
    """
    checkpoint = open_gguf_file(source, architectures=ARCHITECTURES, name_of=hugging_face_name)
    path, metadata, tensors = source.path, checkpoint.metadata, dict(checkpoint.tensors)
    config = config_from_metadata(path, metadata, tensors, divisors=rope_divisors(checkpoint))
    if config["model_type"] == "llama":
        tensors = _mark_interleaved(tensors, config)
    if config["model_type"] == ARCHITECTURE:
        values = Values(path, metadata)
        config = hybrid_config(values, config)
        tensors = hybrid_tensors(values, config, tensors)
    return replace(checkpoint, config=config, tensors=tensors)


def open_gguf_file(source: Source, *, architectures: Sequence[str], name_of: Callable[[str], str]) -> Checkpoint:
    """Read a header, checked as far as that goes without knowing the architecture: there is no config.

    Args:
        source: the file.
        architectures: those that are expected.
        name_of: a tensor's name from the one in the file.

    Raises:
        CheckpointError: missing, not GGUF, truncated or corrupt.
        UnsupportedError: a version, architecture, part or storage type that is not read.
    """
    header = read_gguf_header(source.path)
    _check_kind(source.path, header.metadata, architectures)
    return Checkpoint(source, {}, _tensors(source.path, header, name_of), metadata=header.metadata)


def _check_kind(path: Path, metadata: dict[str, Any], architectures: Sequence[str]) -> None:
    architecture = metadata.get("general.architecture")
    if architecture is None:
        raise CheckpointError(f"{path} does not say its general.architecture. Fetch it again.")
    if architecture not in architectures:
        raise UnsupportedError(
            f"{path} has the architecture {str(architecture)[:80]!r}, which is not run. "
            f"Known: {', '.join(architectures)}."
        )
    parts = metadata.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise UnsupportedError(
            f"{path} is one of {parts} parts of a model. Join them first: "
            "llama-gguf-split --merge FIRST_PART WHOLE.gguf."
        )


def _tensors(path: Path, header: Header, name_of: Callable[[str], str]) -> dict[str, TensorInfo]:
    tensors: dict[str, TensorInfo] = {}
    for raw in header.tensors:
        name = name_of(raw.name)
        if name in tensors:
            raise CheckpointError(f"{path} is corrupt: it holds the tensor {raw.name} twice.")
        tensors[name] = _info(path, header, raw)
    _check_complete(path, header, tensors)
    return tensors


def _info(path: Path, header: Header, raw: RawTensor) -> TensorInfo:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    dtype = _type_name(path, raw)
    block_size, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[dtype]]
    whole = bool(raw.shape) and 0 not in raw.shape and raw.shape[0] % block_size == 0
    if not whole or raw.offset % header.alignment:
        raise CheckpointError(
            f"{path} is corrupt: the tensor {raw.name} has shape {list(raw.shape)} as {dtype} at "
            f"offset {raw.offset}, expected rows of whole blocks of {block_size} at a multiple of "
            f"{header.alignment}."
        )
    nbytes = prod(raw.shape) // block_size * block_bytes
    shape = tuple(reversed(raw.shape))
    return TensorInfo(shape, dtype, nbytes, path, header.data_start + raw.offset)


def _type_name(path: Path, raw: RawTensor) -> str:
    from gguf import GGMLQuantizationType

    try:
        name = GGMLQuantizationType(raw.type_number).name
    except ValueError:
        name = f"number {raw.type_number}"
    if name not in STORED_TYPES:
        raise UnsupportedError(
            f"{path}: the tensor {raw.name} is stored as type {name}, which is not read. "
            f"Read are {', '.join(sorted(STORED_TYPES))}."
        )
    return name


def _check_complete(path: Path, header: Header, tensors: dict[str, TensorInfo]) -> None:
    ends = ((tensor.offset or 0) + tensor.nbytes for tensor in tensors.values())
    needed = max(ends, default=0)
    if header.file_size < needed:
        raise CheckpointError(
            f"{path} is truncated: its tensors take {needed} bytes, it has {header.file_size}. Fetch it again."
        )


def rope_divisors(checkpoint: Checkpoint) -> NDArray[np.float32] | None:
    """Read the one tensor, of a few values, that is configuration rather than weights.

    Raises:
        UnsupportedError: it is not a list of floats.
    """
    info = checkpoint.tensors.get("rope_freqs.weight")
    if info is None:
        return None
    if info.dtype != "F32" or len(info.shape) != 1:
        raise UnsupportedError(
            f"{info.file}: rope_freqs.weight is {info.dtype} of shape {list(info.shape)}; expected a list of F32."
        )
    return np.fromfile(info.file, np.dtype("<f4"), count=info.shape[0], offset=info.offset or 0)


def _mark_interleaved(tensors: dict[str, TensorInfo], config: dict[str, Any]) -> dict[str, TensorInfo]:
    """Note which tensors the converter of this architecture reordered, and over how many heads."""
    heads = {
        "q_proj": config["num_attention_heads"],
        "k_proj": config["num_key_value_heads"],
    }
    marked = dict(tensors)
    for name, tensor in tensors.items():
        module = name.rpartition(".")[0].rpartition(".")[2]
        if module in heads:
            marked[name] = _interleaved(name, tensor, heads[module])
    return marked


def _interleaved(name: str, tensor: TensorInfo, num_heads: int) -> TensorInfo:
    if tensor.shape[0] % (2 * num_heads):
        raise CheckpointError(
            f"{tensor.file} contradicts itself: {name} has {tensor.shape[0]} rows, which "
            f"{num_heads} heads of even size cannot share."
        )
    return replace(tensor, interleaved_heads=num_heads)
