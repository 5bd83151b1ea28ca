"""The header of one safetensors file.

The safetensors library reads and checks it; here its complaints become lines that tell a truncated
file from a corrupt one.
"""

import re
from math import prod
from pathlib import Path

from outrider.checkpoint.checkpoint import TensorInfo
from outrider.checkpoint.lfs import refuse_pointer
from outrider.errors import CheckpointError

LENGTH_BYTES = 8
LARGEST_HEADER = 100_000_000  # the format's own limit


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Return every tensor of the file.

    Raises:
        CheckpointError: truncated, corrupt, or not the file itself.
    """
    from safetensors import SafetensorError, safe_open

    try:
        refuse_pointer(path)
        _check_length(path)
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no dict
            return {name: _info(path, part.get_shape(), part.get_dtype()) for name, part in slices.items()}
    except SafetensorError as error:
        raise CheckpointError(_complaint(path, str(error))) from error
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror or error}.") from error


def _check_length(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        header = int.from_bytes(file.read(LENGTH_BYTES), "little")
    if size < LENGTH_BYTES or (header <= LARGEST_HEADER and LENGTH_BYTES + header > size):
        raise CheckpointError(f"{path} is truncated: it ends within its header, after {size} bytes. Fetch it again.")


def _complaint(path: Path, reason: str) -> str:
    if "not fully covered" in reason:
        return (
            f"{path} is truncated, or longer than its header says: its {path.stat().st_size} bytes "
            "are not those of its tensors. Fetch it again."
        )
    return f"{path} has a corrupt header ({reason.splitlines()[0]}). Fetch it again."


def _info(path: Path, shape: list[int], dtype: str) -> TensorInfo:
    digits = re.search(r"\d+", dtype)  # BF16, F8_E4M3, I64; BOOL has none and takes a byte
    bits = int(digits[0]) if digits else 8
    return TensorInfo(tuple(shape), dtype, prod(shape) * bits // 8, path)
