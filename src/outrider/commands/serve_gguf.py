"""A drafter's folder as the GGUF file that llama.cpp reads, written once into our cache."""

from hashlib import sha256
from pathlib import Path

from outrider.checkpoint import open_checkpoint, resolve
from outrider.checkpoint.cache import cache_dir
from outrider.errors import OutriderError


def gguf_of(drafter: str, target: str) -> Path | None:
    """Return the file; None for what is no drafter that can be written so.

    Args:
        drafter: a DFlash or DSpark drafter.
        target: whose vocabulary goes into the file: llama.cpp loads no drafter without one.

    Raises:
        OutriderError: llama.cpp does not run something of the drafter, or the disk is full.
    """
    from outrider.models.dflash.formats import examine, read_drafter

    try:
        source = resolve(drafter)
        examine(source)
    except OutriderError:
        return None
    folder = cache_dir() / "gguf" / _fingerprint(source.path, target)
    if (ready := next(folder.glob("*.gguf"), None)) is not None:
        return ready
    from outrider.models.dflash.loading import read_weight
    from outrider.train.export import export_gguf
    from outrider.train.vocabulary import read_vocabulary

    found = read_drafter(source)
    tensors = {name: read_weight(found, name) for name in found.checkpoint.tensors}
    vocabulary = read_vocabulary(open_checkpoint(resolve(target), weights=False))
    return export_gguf(found.config, tensors, folder, vocabulary=vocabulary)


def _fingerprint(folder: Path, target: str) -> str:
    """Return what changes when a file of the drafter does."""
    files = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    said = [target, *(f"{one} {one.stat().st_size} {one.stat().st_mtime_ns}" for one in files)]
    return sha256("\n".join(said).encode()).hexdigest()[:16]
