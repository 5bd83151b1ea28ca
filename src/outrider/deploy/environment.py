"""Where an engine is, and which version of it, without importing it."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from outrider.adapters.start import Starter
from outrider.errors import UsageError

SECONDS = 60.0
_BUILD = re.compile(r"version: *b?(\d{3,6})\b")
_ASK = (
    "import importlib.metadata as m,sys\n"
    "for n in sys.argv[1:]:\n"
    "  try: print(m.version(n)); break\n"
    "  except m.PackageNotFoundError: pass"
)


@dataclass(frozen=True, slots=True)
class Found:
    """An engine on this machine.

    Attributes:
        python: of its environment; None for a program without one.
        version: as its package or its program says; None where it does not.
    """

    python: Path | None
    version: str | None


def find(starter: Starter, python: Path | None) -> Found:
    """Return an engine.

    Args:
        starter: which.
        python: of the environment that holds it; None looks for its program on the path.

    Raises:
        UsageError: it is not there; says what would help.
    """
    if python is not None:
        return _in_environment(starter, python)
    program = shutil.which(starter.program(None)[0])
    if program is None:
        raise UsageError(
            f"There is no program {starter.program(None)[0]} on the path: install {starter.title}, or give --python "
            "with the Python of the environment that holds it."
        )
    owner = _owner(Path(program))
    if owner is None:
        return Found(None, _told_version(program))
    return Found(None, _package_version(starter, owner))


def _in_environment(starter: Starter, python: Path) -> Found:
    found = Path(shutil.which(str(python)) or python).absolute()
    if not found.exists():
        raise UsageError(f"--python {python}: expected a Python, and there is no such file.")
    version = _package_version(starter, found)
    program = Path(starter.program(found)[0])
    if version is None and program != found:
        return Found(found, _told_version(str(program)))
    if version is None:
        names = " or ".join(starter.packages)
        raise UsageError(f"The environment of {python} holds no {names}: install it there, or name another.")
    return Found(found, version)


def _owner(program: Path) -> Path | None:
    """Return the Python that runs a script; None for a program that is none."""
    with program.open("rb") as file:
        first = file.readline(512)
    if not first.startswith(b"#!"):
        return None
    path = Path(first[2:].decode(errors="replace").split()[0])
    return path if path.name.startswith("python") else None


def _package_version(starter: Starter, python: Path) -> str | None:
    said = _output([str(python), "-I", "-c", _ASK, *starter.packages]) or None
    if said is not None and "xllamacpp" in starter.packages:
        return f"b{said.rpartition('.')[2]}"  # its version ends in llama.cpp's build
    return said


def _told_version(program: str) -> str | None:
    found = _BUILD.search(_output([program, "--version"]))
    return f"b{found.group(1)}" if found else None


def _output(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout + done.stderr if done.returncode == 0 else "").strip()
