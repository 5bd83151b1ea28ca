"""The drafters that come with this package, so that everything runs on a trained pair where no hub is reachable."""

from importlib.resources import files
from pathlib import Path

SHIPPED = {"smollm2-135m-dflash": "smollm2-135m"}  # the drafter's name, and that of its target


def shipped_folder(name: str) -> Path:
    """Return where a shipped drafter lies."""
    return Path(str(files("outrider").joinpath("assets", name)))


def shipped_for(target: str) -> str | None:
    """Return the name of the drafter that was trained for a target, if one is shipped."""
    return next((drafter for drafter, trained_for in SHIPPED.items() if trained_for == target), None)
