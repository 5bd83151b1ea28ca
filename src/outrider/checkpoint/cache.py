"""Outrider's own cache folder, and how a file gets into it.

A file appears under its final name only when it is complete and its checksum is right, so two
processes may fetch the same one at the same time. Knows nothing of where the bytes come from.
"""

import errno
import hashlib
import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from outrider.errors import FetchError

CHUNK_BYTES = 1 << 20
MEGABYTE = 1_000_000


def cache_dir() -> Path:
    """Return ``$OUTRIDER_CACHE``, else ``outrider`` in the user's cache folder."""
    own = os.environ.get("OUTRIDER_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "outrider"


def make_folder(folder: Path) -> None:
    """Create ``folder``; a place that cannot be written is a `FetchError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error, needed=0) from error


def store(stream: IO[bytes], target: Path, *, size: int, sha256: str) -> None:
    """Copy ``stream`` to ``target``, all of it or nothing.

    Raises:
        FetchError: the disk is full or the bytes are not the expected ones; nothing is left behind.
    """
    make_folder(target.parent)
    temporary: Path | None = None
    try:
        with NamedTemporaryFile(dir=target.parent, suffix=".partial", delete=False) as file:
            temporary = Path(file.name)
            found = _copy(stream, file)
        if found != (size, sha256):
            raise FetchError(
                f"{target.name} arrived damaged: expected {size} bytes with SHA-256 {sha256}, "
                f"found {found[0]} bytes with {found[1]}. Nothing was kept; try again."
            )
        temporary.replace(target)
    except OSError as error:
        raise cannot_write(target.parent, error, needed=size) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _copy(stream: IO[bytes], file: IO[bytes]) -> tuple[int, str]:
    digest = hashlib.sha256()
    size = 0
    while chunk := stream.read(CHUNK_BYTES):
        file.write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def is_full(error: BaseException) -> bool:
    """Tell whether ``error``, or what caused it, is a full disk.

    Download libraries written in other languages keep only the words of the system's error.
    """
    seen: BaseException | None = error
    while seen is not None:
        if getattr(seen, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            return True
        if "no space left" in str(seen).lower():
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def no_space(folder: Path, needed: int) -> FetchError:
    """Return the error that says how much room is missing, and where."""
    size = f"about {needed / MEGABYTE:.0f} MB are" if needed else "more room is"
    return FetchError(
        f"The disk that holds {folder} is full: {size} needed there. The partial file was removed; "
        "free some space, or point OUTRIDER_CACHE (package) or HF_HOME (hub) at another disk."
    )


def cannot_write(folder: Path, error: OSError, *, needed: int) -> FetchError:
    """Return the one-line error for ``folder`` not taking a file."""
    if is_full(error):
        return no_space(folder, needed)
    return FetchError(
        f"Cannot write to the cache folder {folder}: {error.strerror or error}. "
        "Set OUTRIDER_CACHE to a folder that can be written."
    )
