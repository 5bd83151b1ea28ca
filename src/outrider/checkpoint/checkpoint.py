"""What is known of a model from the headers of its files: config, tensors, metadata.

The same for both kinds of source: keys and tensor names are those of Hugging Face. Values are not
read here, and no family of models is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outrider.checkpoint.source import Source


@dataclass(frozen=True, slots=True)
class BlockScales:
    """Factors of a tensor in 8-bit floats, one a block: the tensor that holds them, and rows and columns of a block."""

    info: "TensorInfo"
    name: str
    block: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TiledHeads:
    """Value heads in the order in which GGUF stores them: first of each key head, then the second of each, and so on.

    Attributes:
        key_heads, group: heads, and value heads that each serves; in Hugging Face's order these stand together.
        size: rows (or columns) of a head.
        first: rows before the first value head.
        columns: whether it is the columns that are heads.
    """

    key_heads: int
    group: int
    size: int
    first: int = 0
    columns: bool = False


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One stored tensor: its shape in PyTorch's order, how it is stored, and where."""

    shape: tuple[int, ...]
    dtype: str
    """As the file calls it: ``BF16``, ``Q4_1``."""
    nbytes: int
    file: Path
    offset: int | None = None
    """First byte in ``file``; None where safetensors finds the tensor by its name."""
    interleaved_heads: int = 0
    """Number of heads whose rotary rows are stored in pairs (GGUF's llama); 0 for none."""
    stored_name: str | None = None
    """Name in ``file``, where it is known by another here."""
    scales: BlockScales | None = None
    tiled_heads: TiledHeads | None = None
    added: float = 0.0
    """What the converter added to every value."""
    negative_exp: bool = False
    """Whether the converter stored -exp of the values."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model's headers. ``metadata`` is a GGUF file's own; a folder has none."""

    source: Source
    config: dict[str, Any]
    tensors: Mapping[str, TensorInfo]
    metadata: dict[str, Any] = field(default_factory=dict)
    generation_config: dict[str, Any] = field(default_factory=dict)


def open_checkpoint(source: Source, *, weights: bool = True) -> Checkpoint:
    """Read the headers of a model's files.

    Args:
        source: where they are.
        weights: False for a folder's config alone, whose weights need not be there.

    Raises:
        CheckpointError: files are missing, damaged or contradict each other.
        UnsupportedError: a kind of file or storage that is not read.
    """
    if source.kind == "gguf":
        from outrider.checkpoint.gguf import open_gguf

        return open_gguf(source)
    from outrider.checkpoint.folder import open_folder

    return open_folder(source, weights=weights)
