"""What to do about each cause, from ``remedies.toml``: by engine where that is known, then what holds for all."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from outrider.doctor.evidence import Engine
from outrider.doctor.verdict import Cause


def remedies(cause: Cause, engine: Engine | None) -> list[str]:
    """Most promising first."""
    part = table()[cause]
    return [*part.get(engine or "", []), *part["all"]]


@cache
def table() -> Mapping[str, Mapping[str, list[str]]]:
    """Remedies by cause and engine."""
    text = files(__package__).joinpath("remedies.toml").read_text("utf-8")
    return {cause: dict(part) for cause, part in tomllib.loads(text).items()}
