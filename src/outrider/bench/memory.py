"""Resident memory of this process, now and at its highest. None where the system does not tell."""

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def resident_bytes() -> int | None:
    """Resident memory now."""
    return _from_status("VmRSS") if _STATUS.exists() else _from_psutil("rss")


def peak_bytes() -> int | None:
    """The highest resident memory since the start or the last ``reset_peak``."""
    # Only Windows keeps a peak that psutil can read.
    return _from_status("VmHWM") if _STATUS.exists() else _from_psutil("peak_wset")


def reset_peak() -> None:
    """Forget the peak so far, where the system can; elsewhere it stays what it was."""
    with suppress(OSError):
        _CLEAR.write_text("5", encoding="ascii")


def _from_status(key: str) -> int | None:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return None


def _from_psutil(field: str) -> int | None:
    try:
        psutil: Any = import_module("psutil")
    except ImportError:
        return None
    return getattr(psutil.Process().memory_info(), field, None)
