"""Where a number comes from: versions, machine, commit, command line, seed.

Saved beside each result. Imports none of the packages whose versions it reports, and holds no host
name, no user name and no home folder.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_PACKAGES = ("torch", "transformers", "numpy", "gguf", "safetensors", "tokenizers", "xllamacpp")
_HOMES = re.compile(r"(/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\]+")
_ROOT = Path(__file__).parents[2]


class Provenance(BaseModel):
    """How and where a result was made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    outrider: str
    python: str
    packages: dict[str, str]
    platform: str
    cpu: str
    logical_cores: int
    threads: int | None
    memory_bytes: int | None
    git_commit: str | None
    git_dirty: bool | None
    command: list[str]
    date: str
    seed: int | None

    def line(self) -> str:
        """Machine, versions, commit and day in one line, to stand under a table."""
        commit = (self.git_commit or "unknown")[:12] + (" with changes" if self.git_dirty else "")
        packages = ", ".join(f"{package} {number}" for package, number in self.packages.items())
        return (
            f"{self.cpu}, {self.threads or self.logical_cores} threads, Python {self.python}, {packages}; "
            f"commit {commit}, {self.date[:10]}."
        )


def provenance(*, threads: int | None = None, seed: int | None = None) -> Provenance:
    """Describe this process.

    Args:
        threads: What the run computed with, where it set a number.
        seed: What the run's random numbers started from, where it had one.
    """
    commit, dirty = _git()
    return Provenance(
        # By name: the package's own module stands above this one in the order of imports.
        outrider=str(import_module("outrider").__version__),
        python=platform.python_version(),
        packages=_versions(),
        platform=platform.platform(),
        cpu=_cpu(),
        logical_cores=os.cpu_count() or 1,
        threads=threads,
        memory_bytes=_memory(),
        git_commit=commit,
        git_dirty=dirty,
        command=_command(sys.argv),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=seed,
    )


def _versions() -> dict[str, str]:
    """Versions of the packages that are installed, from their metadata."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system has sysconf
        return None


def _git() -> tuple[str | None, bool | None]:
    """Commit, and whether tracked files differ from it; None outside a checkout."""
    git = shutil.which("git")
    if git is None or not (_ROOT / ".git").exists():
        return None, None
    commit = _run([git, "-C", str(_ROOT), "rev-parse", "HEAD"])
    changes = _run([git, "-C", str(_ROOT), "status", "--porcelain", "--untracked-files=no"])
    return commit, None if changes is None else bool(changes)


def _run(command: list[str]) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  # fixed arguments, the program found by which
            command, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _command(argv: Sequence[str]) -> list[str]:
    """The command line without the folder of the program and without home folders."""
    if not argv:
        return []
    home = str(Path.home())
    arguments = (argument.replace(home, "~") if len(home) > 1 else argument for argument in argv[1:])
    return [Path(argv[0]).name, *(_HOMES.sub("~", argument) for argument in arguments)]
