"""Logs and launch commands, as they were pasted."""

import re
from pathlib import Path

from outrider.adapters import ADAPTERS, Part, adapter_of_command, adapter_of_log
from outrider.adapters.launch import read_command
from outrider.adapters.lines import excerpt, failure, plain
from outrider.errors import UsageError

_NOTHING = re.compile(r"(?!)")
MOST_BYTES = 256 << 20


def read_log(path: Path) -> tuple[Part, list[str]]:
    """Return what a log says, and what of it could not be read.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    warnings = [f"{path}: only the first {MOST_BYTES >> 20} MiB were read."] if len(data) > MOST_BYTES else []
    part, told = log_part(data[:MOST_BYTES].decode(errors="replace"))
    return part, warnings + [f"{path}: {one}" for one in told]


def log_part(text: str) -> tuple[Part, list[str]]:
    """Return what the text of a log says, and what of it could not be read."""
    lines = plain(text)
    adapter = adapter_of_log(text)
    if adapter is None:
        told = [] if text.strip() else ["it is empty"]
        known = ", ".join(ADAPTERS)
        told += [f"no line of a known engine ({known}) is in it; errors and notable lines were kept"]
        found = {"error": failure(lines), "log": excerpt(lines, _NOTHING)}
        return {key: value for key, value in found.items() if value}, told
    logged = adapter.log(lines)
    told = [f"{logged.unread} lines of measurements are cut off or garbled and were left out"] if logged.unread else []
    if "counters" not in logged.part:
        told.append("no measurement of acceptance is in it")
    return {"engine": {"name": adapter.name} | logged.part.pop("engine", {})} | logged.part, told


def command_part(text: str) -> tuple[Part, list[str]]:
    """Return what a launch command says."""
    launch = read_command(text)
    adapter = adapter_of_command(launch)
    command = " ".join(text.split())
    if adapter is None:
        return {"engine": {"command": command}}, [f"The command starts no known engine ({', '.join(ADAPTERS)})."]
    part = adapter.command(launch)
    return part | {"engine": {"name": adapter.name, "command": command} | part.get("engine", {})}, []
