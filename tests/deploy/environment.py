"""An environment whose Python is the simulated engine, and what is needed to run servers in tests."""

import os
import socket
import sys
from pathlib import Path

ENGINE = Path(__file__).with_name("simulated_engine.py")


def write_environment(folder: Path) -> Path:
    """Write the environment; return its Python."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ENGINE}" "$@"\n')
    python.chmod(0o755)
    return python


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended and was not waited for does not."""
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


def worker_of(log: Path) -> int:
    """Return the process id of the worker that the simulated engine started."""
    return next(int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("worker "))
