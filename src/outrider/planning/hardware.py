"""Devices by name from the data file, and the one that is here."""

import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from outrider.errors import UnknownNameError, UsageError

COPY_SHARE = 0.89  # of the maker's bandwidth that the H200's copy reaches
TERA = 1e12
_COPIED = 1 << 28  # bytes: past any cache
_CPU_FLOPS = 0.05  # TFLOP/s a core: two AVX2 multiply-adds a cycle


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device.

    Attributes:
        name: as it is shown.
        memory: bytes.
        copy: bytes a second, read and written, of a copy.
        streamed: share of that at which the weights of a pass are read.
        flops: of dense products, a second.
        measured: its bandwidth was measured, else it is the maker's times ``COPY_SHARE``.
        source: of that.
    """

    name: str
    memory: float
    copy: float
    streamed: float
    flops: float
    measured: bool
    source: str


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(files("outrider.planning").joinpath("data/hardware.toml").read_text("utf-8"))


def names() -> list[str]:
    """All devices that are known."""
    return [key for key, row in _table().items() if isinstance(row, Mapping)]


def device(name: str) -> Device:
    """Return a device by name.

    Raises:
        UnknownNameError: with the nearest one.
    """
    key = name.lower().replace("-", "").replace(" ", "").replace("_", "")
    if key not in names():
        raise UnknownNameError("GPU", name, names())
    row = _table()[key]
    measured = "copy" in row
    return Device(
        name=key,
        memory=row["memory"] * 2**30,
        copy=(row["copy"] if measured else COPY_SHARE * row["bandwidth"]) * TERA,
        streamed=_table()["streamed"],
        flops=row["flops"] * TERA,
        measured=measured,
        source=row.get("source", f"the maker's bandwidth times {COPY_SHARE}"),
    )


def here() -> tuple[Device, int]:
    """Return the device of this machine and how many of them there are: a GPU that is known, else the processor.

    Raises:
        UsageError: a GPU that is not in the table.
    """
    found = _gpus()
    if not found:
        return _processor(), 1
    for key in names():
        if re.search(_table()[key]["match"], found[0]):
            return device(key), len(found)
    raise UsageError(f"This machine has a {found[0]}, which is not in the table: give --gpu with one like it.")


def _gpus() -> list[str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        done = subprocess.run(  # noqa: S603 -- fixed arguments, the program found by which
            [program, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _processor() -> Device:
    """The processor with its memory's bandwidth, measured now by a copy."""
    import numpy as np

    from outrider.provenance import provenance

    about = provenance()
    source = np.ones(_COPIED, dtype=np.uint8)
    target = np.empty_like(source)
    seconds = min(_timed(lambda: np.copyto(target, source)) for _ in range(3))
    return Device(
        name=about.cpu,
        memory=float(about.memory_bytes or 0),
        copy=2 * _COPIED / seconds,
        streamed=1.0,
        flops=about.logical_cores * _CPU_FLOPS * TERA,
        measured=True,
        source="a copy of 256 MiB, measured now",
    )


def _timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
