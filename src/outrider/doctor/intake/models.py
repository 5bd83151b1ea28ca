"""A drafter's and a target's files: config, shapes of tensors, the card. Headers only, no torch, no weights fetched."""

import re
from pathlib import Path
from typing import Any

from outrider.adapters import Part
from outrider.checkpoint import Checkpoint, Source, open_checkpoint, resolve
from outrider.checkpoint.card import training_notes
from outrider.checkpoint.folder import open_folder, read_headers
from outrider.checkpoint.source import is_hub_name
from outrider.doctor.intake.tokens import mask_note
from outrider.errors import CheckpointError, OutriderError
from outrider.models.dflash.formats import examine

_TRAINING = re.compile(
    r"still (under|in|being|improving)|unfinished|preview|not (yet )?(converged|finished)|work in progress|early|"
    r"\d[\d.,]*\s*[kKMB]?\w*\s+(samples|epochs?|steps)",
    re.IGNORECASE,
)
"""Of a card's lines those on how far the training went; the rest of a card is no symptom."""


def drafter_part(name: str) -> tuple[Part, list[str]]:
    """Return what a drafter's files say.

    Raises:
        OutriderError: there are none, or they cannot be read.
    """
    if is_hub_name(name):
        checkpoint = _of_hub(name)
        part = _drafter(name, checkpoint.config, _shapes(checkpoint), training_notes(checkpoint))
        return part, []
    folder = Path(name).expanduser()
    if folder.is_dir() and not (folder / "config.json").exists() and (headers := read_headers(folder)):
        shapes = {key: list(info.shape) for key, info in headers.items()}
        return _drafter(name, {}, shapes, []), [f"{name} has no config.json; outrider repair can find one that works."]
    source = resolve(name)
    try:
        found = examine(source)
    except CheckpointError as error:
        return _of_another_kind(name, source, error)
    from outrider.models.dflash.formats.writing import zlab_config

    config = found.checkpoint.config
    if source.kind == "gguf" and found.config is not None:
        config = zlab_config(found.config)
    part = _drafter(name, config, _shapes(found.checkpoint), training_notes(found.checkpoint))
    if found.config is not None:
        part["method"] = found.config.kind
    told = [f"{problem.key}: {problem.message}" for problem in found.problems]
    fatal = [problem.message for problem in found.problems if problem.fatal]
    if fatal:
        part["notes"] = "The drafter's files: " + " ".join(fatal)
    return part, [f"{name}: {one}" for one in told]


def target_part(name: str, *, heads: bool, drafter: dict[str, Any]) -> Part:
    """Return what a target's files say, and of the drafter's mask token what it is there.

    Args:
        name: of the target.
        heads: with the names of its tensors, among which MTP heads are.
        drafter: the drafter's config, as far as it is known.

    Raises:
        OutriderError: there are none, or they cannot be read.
    """
    checkpoint = _of_hub(name) if is_hub_name(name) else open_checkpoint(resolve(name), weights=heads)
    part: Part = {"target": {"name": name, "config": checkpoint.config, "quantisation": _quantisation(checkpoint)}}
    if heads and checkpoint.tensors:
        part["drafter"] = {"tensors": _shapes(checkpoint)}
    if note := mask_note(drafter, checkpoint):
        part["notes"] = note
    return part


def _of_another_kind(name: str, source: Source, error: CheckpointError) -> tuple[Part, list[str]]:
    """Read a drafter that is no DFlash one, or a damaged one: whatever its config says."""
    if source.kind == "gguf":
        raise error
    try:
        checkpoint = open_folder(source, needed=())
    except CheckpointError:
        checkpoint = open_folder(source, weights=False, needed=())
        return _drafter(name, checkpoint.config, {}, []) | {"error": str(error)}, [str(error)]
    return _drafter(name, checkpoint.config, _shapes(checkpoint), training_notes(checkpoint)), []


def _of_hub(name: str) -> Checkpoint:
    from outrider.checkpoint.checkpoint import TensorInfo
    from outrider.checkpoint.hub import fetch_headers

    folder, shapes = fetch_headers(name)
    source = Source(folder, "folder", f"hub {name}")
    tensors = {key: TensorInfo(shape, "", 0, Path(key)) for key, shape in shapes.items()}
    try:
        config = open_folder(source, weights=False, needed=()).config
    except OutriderError:
        config = {}  # a drafter may lack it: then its tensors are what there is
    return Checkpoint(source, config, tensors)


def _drafter(name: str, config: dict[str, Any], tensors: dict[str, list[int]], card: list[str]) -> Part:
    part: dict[str, Any] = {"name": name, "config": config, "tensors": tensors}
    told = [line for line in card if _TRAINING.search(line)]
    return {"drafter": part | ({"training": "; ".join(told)} if told else {})}


def _shapes(checkpoint: Checkpoint) -> dict[str, list[int]]:
    return {name: list(info.shape) for name, info in checkpoint.tensors.items()}


def _quantisation(checkpoint: Checkpoint) -> str | None:
    """Return the method that the config names; of a GGUF file the storage that holds most."""
    config = checkpoint.config.get("quantization_config")
    if isinstance(config, dict):
        return str(config.get("quant_method", "")) or None
    if checkpoint.source.kind != "gguf" or not checkpoint.tensors:
        return None
    sizes: dict[str, int] = {}
    for info in checkpoint.tensors.values():
        sizes[info.dtype] = sizes.get(info.dtype, 0) + info.nbytes
    most = max(sizes, key=lambda kind: sizes[kind])
    return None if most in ("F32", "F16", "BF16") else f"gguf-{most.lower()}"
