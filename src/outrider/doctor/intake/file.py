"""An evidence file: YAML or JSON. A value of the wrong kind is left out and told; the rest counts."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from outrider.adapters import Part
from outrider.doctor.evidence import Evidence
from outrider.errors import UsageError

MOST_BYTES = 32 << 20
MOST_TOLD = 20


def read_file(path: Path) -> tuple[Part, list[str]]:
    """Return its part and what is wrong with it.

    Raises:
        UsageError: it cannot be read, or is no evidence file at all.
    """
    found = _parsed(path)
    if not isinstance(found, dict):
        raise UsageError(f"{path}: expected keys such as method, engine and counters, found {type(found).__name__}.")
    if found.get("schema") != 1:
        told = "no schema" if "schema" not in found else f"schema {found['schema']!r}"
        raise UsageError(f"{path}: expected schema: 1 in an evidence file (docs/evidence.md), found {told}.")
    evidence, warnings = checked(found)
    unknown = list(_unknown(evidence))
    if unknown:
        warnings.append(f"Keys that mean nothing in an evidence file: {', '.join(unknown[:MOST_TOLD])}.")
    return evidence.model_dump(mode="json", exclude_unset=True, by_alias=True), [f"{path}: {w}" for w in warnings]


def checked(part: Part) -> tuple[Evidence, list[str]]:
    """Return the evidence without values of the wrong kind, and what was left out."""
    warnings: list[str] = []
    while True:
        try:
            return Evidence.model_validate(part), warnings
        except ValidationError as error:
            # One at a time: leaving out a value can mend others.
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            path = [key for key in first["loc"] if not str(key).startswith(("constrained-", "function-"))]
            part = _without(part, path)
            warnings.append(f"{'.'.join(map(str, path))}: {first['msg']}; left out.")


def _parsed(path: Path) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} has more than {MOST_BYTES >> 20} MiB: that is no evidence file.")
        return yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise UsageError(f"{path} is no YAML or JSON: {told[:200]}.") from error


def _without(part: Any, path: list[Any]) -> Any:
    """Return a copy without the value at the path, or without the nearest that can be left out."""
    if len(path) <= 1 or not isinstance(part, dict | list):
        if isinstance(part, dict):
            return {key: value for key, value in part.items() if not path or key != path[0]}
        return [value for index, value in enumerate(part) if not path or index != path[0]]
    if isinstance(part, list):
        return [_without(value, path[1:]) if index == path[0] else value for index, value in enumerate(part)]
    inner = part.get(path[0])
    if not isinstance(inner, dict | list):  # the complaint is of the value itself
        return {key: value for key, value in part.items() if key != path[0]}
    return part | {path[0]: _without(inner, path[1:])}


def _unknown(model: Any, where: str = "") -> list[str]:
    found = [f"{where}{key}" for key in model.model_extra or ()]
    for name in type(model).model_fields:
        value = getattr(model, name)
        if hasattr(value, "model_extra"):
            found += _unknown(value, f"{where}{name}.")
    return found
