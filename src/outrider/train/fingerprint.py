"""A short proof that a model's files are the ones they were, without reading all of their bytes."""

import hashlib
from pathlib import Path

from outrider.checkpoint.checkpoint import Checkpoint
from outrider.errors import CheckpointError

PIECES = 64
PIECE_BYTES = 1 << 16
_SMALL = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def fingerprints(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the fingerprint of each file that a model is read from, by name.

    Raises:
        CheckpointError: a file has gone or cannot be read.
    """
    path = checkpoint.source.path
    files = {info.file for info in checkpoint.tensors.values()}
    files |= {path / name for name in _SMALL if (path / name).is_file()} if path.is_dir() else {path}
    return {file.name: fingerprint(file) for file in sorted(files)}


def fingerprint(path: Path) -> str:
    """Return a SHA-256 over a file's size and evenly spaced pieces of it: all of it where it is small.

    Raises:
        CheckpointError: it has gone or cannot be read.
    """
    digest = hashlib.sha256()
    try:
        size = path.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        stride = max((size - PIECE_BYTES) // (PIECES - 1), PIECE_BYTES)
        with path.open("rb") as file:
            for start in range(0, size, stride):
                file.seek(start)
                digest.update(file.read(PIECE_BYTES))
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror or error}; the target has gone.") from None
    return digest.hexdigest()
