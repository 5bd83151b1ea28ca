"""Shapes by name: configs of a target and its drafter, without their files. Free of torch."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from outrider.errors import CheckpointError, UsageError
from outrider.models.config import DecoderConfig
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.checks import fit
from outrider.models.dflash.formats.shape import MaskToken
from outrider.models.dflash.formats.zlab import read_zlab, zlab_keys
from outrider.models.loading import decoder_config


@dataclass(frozen=True, slots=True)
class Shapes:
    """A target and, where there is one, its DFlash drafter."""

    name: str
    target: DecoderConfig
    drafter: DFlashConfig | None


def known_shapes() -> list[str]:
    """Names that need no file."""
    return sorted(entry.name.removesuffix(".json") for entry in files("outrider.pace").joinpath("configs").iterdir())


def read_shapes(name: str) -> Shapes:
    """Return shapes of a known name, or of a JSON file with the keys ``target`` and perhaps ``drafter``.

    Raises:
        UsageError: neither.
        OutriderError: a config that does not stand for a model.
    """
    raw = _raw(name)
    if not isinstance(raw, dict) or not isinstance(raw.get("target"), dict):
        raise UsageError(f"Shapes {name!r}: expected a JSON object with a config.json under the key target.")
    target = decoder_config(raw["target"])
    return Shapes(Path(name).stem if name.endswith(".json") else name, target, _drafter(name, raw, target))


def _raw(name: str) -> Any:
    if name in known_shapes():
        return json.loads(files("outrider.pace").joinpath("configs", f"{name}.json").read_text(encoding="utf-8"))
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"Shapes {name!r}: expected one of {', '.join(known_shapes())}, or a JSON file.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"Shapes {name!r} is no JSON: {error}") from error


def _drafter(name: str, raw: dict[str, Any], target: DecoderConfig) -> DFlashConfig | None:
    if raw.get("drafter") is None:
        return None
    keys = zlab_keys(raw["drafter"])
    config = read_zlab(keys, {}, MaskToken(embedding=False))
    problems = [*keys.problems, *fit(config, target)]
    if problems:
        raise CheckpointError(f"Shapes {name!r}, drafter: {problems[0].key}: {problems[0].message}")
    return config
