"""The folder of a run, read without its target: what it trained, and the weights of one of its checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outrider.errors import CheckpointError, UsageError
from outrider.models.dflash.config import DFlashConfig
from outrider.train.report.own import NAME, is_own, read_header

if TYPE_CHECKING:
    from torch import Tensor

SHOWN = 6  # steps named in a message


@dataclass(frozen=True, slots=True)
class Trained:
    """One checkpoint of a run.

    Attributes:
        header: first line of the run's log.
        log: where that is.
        tensors: means over steps, under z-lab names.
    """

    header: Mapping[str, Any]
    log: Path
    config: DFlashConfig
    step: int
    tensors: "Mapping[str, Tensor]"

    @property
    def target(self) -> str:
        """The target, as it was named when the run began; empty where the log does not say it."""
        name = self.header.get("target")
        return name if isinstance(name, str) else ""


def open_run(folder: Path, step: int | None = None) -> Trained:
    """Read a checkpoint.

    Args:
        folder: of the run.
        step: whose checkpoint; the newest if None.

    Raises:
        UsageError: this is no run's folder, or it has no such checkpoint.
        CheckpointError: the checkpoint is damaged, or the log's config is not understood.
    """
    log = folder / NAME
    if not log.is_file() or not is_own(log):
        raise UsageError(f"{folder} is no folder of outrider train dflash: expected {NAME} in it.")
    header = read_header(log)
    place = _checkpoint(folder, step)
    return Trained(header, log, _config(header, log), int(place.name.rpartition("-")[2]), _tensors(place))


def _checkpoint(folder: Path, step: int | None) -> Path:
    from outrider.train.state import checkpoints, place

    found = checkpoints(folder)
    if not found:
        raise UsageError(f"{folder} has no complete checkpoint yet; train on, or wait for the first one.")
    if step is None:
        return found[-1]
    if place(folder, step) not in found:
        steps = [path.name.rpartition("-")[2].lstrip("0") or "0" for path in found]
        more = f" and {len(steps) - SHOWN} before" if len(steps) > SHOWN else ""
        raise UsageError(f"{folder} has no checkpoint of step {step}; there are {', '.join(steps[-SHOWN:])}{more}.")
    return place(folder, step)


def _config(header: Mapping[str, Any], log: Path) -> DFlashConfig:
    from outrider.train.task import config_from

    try:
        return config_from(header["config"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{log}: the config in its first line is not understood ({type(error).__name__}: {error}); another version "
            "wrote it, or it is damaged."
        ) from error


def _tensors(place: Path) -> "Mapping[str, Tensor]":
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from outrider.train.state import MEANS

    try:
        return load_file(place / MEANS)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointError(
            f"Cannot read {place / MEANS}: {str(reason).rstrip('.')}; export another step."
        ) from error
