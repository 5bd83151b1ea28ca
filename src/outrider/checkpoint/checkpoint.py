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
