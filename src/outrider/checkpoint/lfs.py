"""Git LFS pointers: small texts that stand where a large file should be.

The commonest reason for a "corrupt" model file, and the one with the simplest cure.
"""

from pathlib import Path

from outrider.errors import CheckpointError

POINTER = b"version https://git-lfs"


def refuse_pointer(path: Path) -> None:
    """Raise `CheckpointError` if ``path`` is a pointer and not the file itself."""
    with path.open("rb") as file:
        start = file.read(len(POINTER))
    if start == POINTER:
        raise CheckpointError(f"{path} is a Git LFS pointer, not the file itself. Run 'git lfs pull' in its folder.")
