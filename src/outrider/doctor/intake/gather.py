"""All sources, one evidence: what a person wrote stands first, then what was measured, then what files say."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from outrider.adapters import Part
from outrider.doctor.evidence import Evidence
from outrider.doctor.intake.file import checked, read_file
from outrider.doctor.intake.merge import Merged
from outrider.errors import OutriderError


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is known.

    Attributes:
        evidence: all of it.
        warnings: what could not be read, and contradictions.
        sources: what was read.
    """

    evidence: Evidence
    warnings: tuple[str, ...]
    sources: tuple[str, ...]


def gather(
    *,
    file: Path | None = None,
    url: str | None = None,
    logs: Sequence[Path] = (),
    commands: Sequence[str] = (),
    drafter: str | None = None,
    target: str | None = None,
    probe: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Gathered:
    """Put together what is given. A source that fails is told, as long as another says something.

    ``sleep`` passes the time between two looks at a server.

    Raises:
        OutriderError: nothing that was given can be read, or the evidence file is none.
    """
    merged, problems = Merged({"schema": 1}), list[OutriderError]()
    if file is not None:
        part, told = read_file(file)
        merged.add(str(file), part)
        merged.warnings += told
    for text in commands:
        _text(merged, text)
    if url is not None:  # before the logs, which round what the server counts
        problems += _server(merged, url, probe=probe, sleep=sleep)
    for path in logs:
        problems += _log(merged, path)
    problems += _models(merged, drafter, target)
    if problems and not merged.sources:
        raise problems[0]
    evidence, told = checked(merged.part)
    warnings = [*merged.warnings, *(str(problem) for problem in problems), *told]
    return Gathered(evidence, tuple(dict.fromkeys(warnings)), tuple(merged.sources))


def _text(merged: Merged, text: str) -> None:
    from outrider.doctor.intake.texts import command_part

    part, told = command_part(text)
    merged.add("the command", part)
    merged.warnings += told


def _log(merged: Merged, path: Path) -> list[OutriderError]:
    from outrider.doctor.intake.texts import read_log

    try:
        part, told = read_log(path)
    except OutriderError as error:
        return [error]
    merged.add(str(path), part)
    merged.warnings += told
    return []


def _server(merged: Merged, url: str, *, probe: bool, sleep: Callable[[float], None]) -> list[OutriderError]:
    from outrider.doctor.intake.server import look

    try:
        looked = look(url, probe=probe, sleep=sleep)
    except OutriderError as error:
        return [error]
    merged.add(url, looked.part)
    merged.warnings += looked.warnings
    return []


def _models(merged: Merged, drafter: str | None, target: str | None) -> list[OutriderError]:
    """Read the models that are named, and those that others name if they are folders here."""
    from outrider.doctor.intake.models import drafter_part, target_part

    problems: list[OutriderError] = []
    drafter = drafter or _here(merged.part, "drafter")
    if drafter is not None:
        try:
            part, told = drafter_part(drafter)
        except OutriderError as error:
            problems.append(error)
        else:
            merged.add(drafter, _unnamed(merged.part, part, "drafter"))
            merged.warnings += told
    target = target or _here(merged.part, "target")
    if target is not None:
        try:
            config = merged.part.get("drafter", {}).get("config") or {}
            part = target_part(target, heads=merged.part.get("method") == "mtp", drafter=config)
            merged.add(target, _unnamed(merged.part, part, "target"))
        except OutriderError as error:
            problems.append(error)
    return problems


def _unnamed(known: Part, part: Part, role: str) -> Part:
    """Return the part without its name where there is one: who names a model says that it is the same."""
    if not known.get(role, {}).get("name"):
        return part
    return part | {role: {key: value for key, value in part[role].items() if key != "name"}}


def _here(part: Part, role: str) -> str | None:
    named = part.get(role)
    name = named.get("name") if isinstance(named, dict) else None
    try:
        return name if isinstance(name, str) and Path(name).is_dir() and not _described(part, role) else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def _described(part: Part, role: str) -> bool:
    return bool(part[role].get("config"))
