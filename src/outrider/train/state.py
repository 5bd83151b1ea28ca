"""Checkpoints of a run: folders that appear whole or not at all, from which it goes on as if it had never stopped.

``step-000001000/`` holds ``weights.safetensors`` and ``ema.safetensors`` (float32, z-lab names), ``optimizer.pt`` and
``state.json``.
"""

import json
import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from outrider.errors import CheckpointError, UsageError

STEP = re.compile(r"step-(\d{9})")
WEIGHTS, MEANS, OPTIMIZER, STATE = "weights.safetensors", "ema.safetensors", "optimizer.pt", "state.json"
UNFINISHED = ".unfinished"


@dataclass(slots=True)
class Progress:
    """How far a run has come, and what it has counted since the last line of its log.

    Attributes:
        step: steps taken.
        tokens: response tokens seen.
        epoch: passes over the data that are complete.
        within: steps taken in the running one.
        counted: sums for the next line of the log, by name.
        run: what must be the same for the run to go on.
    """

    step: int = 0
    tokens: int = 0
    epoch: int = 0
    within: int = 0
    counted: dict[str, list[float]] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a run goes on from."""

    progress: Progress
    weights: Mapping[str, Tensor]
    means: Mapping[str, Tensor]
    optimizers: list[dict[str, Any]]


def place(folder: Path, step: int) -> Path:
    """Return where the checkpoint of a step lies."""
    return folder / f"step-{step:09d}"


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints of a run, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if STEP.fullmatch(path.name) and (path / STATE).is_file())


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint and return its folder.

    Raises:
        UsageError: there is no room, or the place cannot be written.
    """
    step = checkpoint.progress.step
    final = place(folder, step)
    temporary = final.with_name(final.name + UNFINISHED)
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        _write(temporary, checkpoint)
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        _sync(folder)
    except Exception as error:  # each library has an exception of its own for a full disk
        shutil.rmtree(temporary, ignore_errors=True)
        raise UsageError(_unwritten(folder, step, error)) from error
    return final


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    from safetensors.torch import save_file

    for name, tensors in ((WEIGHTS, checkpoint.weights), (MEANS, checkpoint.means)):
        save_file({key: tensor.detach().contiguous() for key, tensor in tensors.items()}, folder / name)
    torch.save(checkpoint.optimizers, folder / OPTIMIZER)
    (folder / STATE).write_text(json.dumps(asdict(checkpoint.progress), indent=1) + "\n", encoding="utf-8")
    for path in (*folder.iterdir(), folder):
        _sync(path)


def _sync(path: Path) -> None:
    """Ask for the bytes to be on the disk before anything is built upon them."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritten(folder: Path, step: int, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), type(error).__name__)
    return f"Cannot write the checkpoint of step {step} to {folder}: {str(reason).rstrip('.')}. {_way_on(folder)}"


def _way_on(folder: Path) -> str:
    found = checkpoints(folder)
    if not found:
        return "There is none before it; make room, or choose another folder with --out."
    return f"Make room and go on from {found[-1].name} with --resume."


def load(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointError: it is damaged or gone.
    """
    from safetensors.torch import load_file

    try:
        progress = Progress(**json.loads((path / STATE).read_text(encoding="utf-8")))
        optimizers = torch.load(path / OPTIMIZER, map_location="cpu", weights_only=True)
        return Checkpoint(progress, load_file(path / WEIGHTS), load_file(path / MEANS), optimizers)
    except Exception as error:  # whatever damage leads to, in four libraries
        reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointError(
            f"Cannot read the checkpoint {path}: {str(reason).rstrip('.')}. Delete that folder to go on from the one "
            "before it."
        ) from error


def prune(folder: Path, *, keep: int, steps: Collection[int]) -> None:
    """Delete checkpoints but the newest and those of certain steps; also what a killed run left half written."""
    complete = checkpoints(folder)
    for path in complete[:-keep]:
        found = STEP.fullmatch(path.name)
        if found is not None and int(found[1]) not in steps:
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f"step-*{UNFINISHED}"):
        shutil.rmtree(path, ignore_errors=True)
