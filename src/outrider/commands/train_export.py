"""``outrider train export``: a checkpoint of a run as a z-lab folder, a speculators folder or a GGUF file, with a card.

What was written is read back by our own reader before anything is said.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from outrider.checkpoint import Checkpoint, open_checkpoint, resolve
from outrider.commands.models import size_text
from outrider.commands.opening import is_here
from outrider.commands.screen import stderr, stdout, waiting
from outrider.commands.train_export_options import Format, StoredDtype
from outrider.errors import CheckpointError, OutriderError, UsageError
from outrider.results import Record

if TYPE_CHECKING:
    from torch import Tensor

    from outrider.models.dflash.config import DFlashConfig
    from outrider.models.dflash.formats.writing import Verifier
    from outrider.train.run_folder import Trained

CARD = "README.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for.

    Attributes:
        run: its folder.
        out: a folder that does not exist, or is empty.
        step: whose checkpoint; the newest if None.
        target: other files of the target than those that the run names.
        license: an identifier of the hub's; the target's own if None.
    """

    run: Path
    format: Format
    out: Path
    step: int | None = None
    dtype: StoredDtype = StoredDtype.bfloat16
    target: str | None = None
    license: str | None = None
    as_json: bool = False


class Exported(Record):
    """What was written: ``outrider train export --json``."""

    path: str
    format: str
    dtype: str
    step: int
    bytes: int
    parameters: int
    target: str


def run(request: Request) -> int:
    """Run the command; return its exit code.

    Raises:
        OutriderError: no such run or checkpoint, a format that has no words for it, a place that cannot be written.
    """
    from outrider.commands.train_export_card import Written, card_text
    from outrider.train.export import check_free
    from outrider.train.run_folder import open_run

    check_free(request.out)
    with waiting(stderr()) as telling:
        telling.spin(f"Reading {request.run}")
        trained = open_run(request.run, request.step)
        name = request.target or trained.target
        target = _target(name, needed=request.format is Format.gguf)
        telling.spin(f"Writing {request.out}")
        path = _write(request, trained, name, target)
        _check(path, trained.config, trained.tensors)
        written = Written(
            trained=trained,
            path=path,
            format=request.format.value,
            dtype=request.dtype.value,
            target=name,
            checkpoint=target,
            license=request.license,
        )
        text = card_text(written)
    _add_card(request.out / CARD, text)
    _print(request, trained, path, name)
    return 0


def _target(name: str, *, needed: bool) -> Checkpoint | None:
    """Open the target's headers, if they are here; a GGUF file needs its vocabulary and fetches them.

    Raises:
        OutriderError: it is needed and cannot be had.
    """
    if not name:
        if needed:
            raise UsageError("The run does not say its target, whose vocabulary a GGUF file needs; give --target.")
        return None
    try:
        if not needed and not is_here(name):
            return None
        return open_checkpoint(resolve(name), weights=False)
    except OutriderError as error:
        if not needed:
            return None
        reason = str(error).rstrip(".")
        raise type(error)(f"{reason}. A GGUF file needs the target's vocabulary; give --target.") from error


def _write(request: Request, trained: "Trained", name: str, target: Checkpoint | None) -> Path:
    """Write the files and return what a reader opens: the folder, or the GGUF file in it."""
    from outrider.train import export
    from outrider.train.vocabulary import read_vocabulary

    config, tensors = trained.config, trained.tensors
    dtype: export.Dtype = "float32" if request.dtype is StoredDtype.float32 else "bfloat16"
    if request.format is Format.gguf:
        assert target is not None  # noqa: S101 -- it was needed
        return export.export_gguf(config, tensors, request.out, dtype, vocabulary=read_vocabulary(target))
    if request.format is Format.speculators:
        export.export_speculators(config, tensors, request.out, dtype, verifier=_verifier(name, target))
    else:
        export.export_zlab(config, tensors, request.out, dtype)
    return request.out


def _verifier(name: str, target: Checkpoint | None) -> "Verifier":
    from outrider.commands.train_export_card import public_name
    from outrider.models.dflash.formats.writing import Verifier

    raw: Mapping[str, Any] = {} if target is None else target.config
    found = raw.get("architectures") or ([f"{str(raw['model_type']).capitalize()}ForCausalLM"] if raw else [])
    return Verifier(public_name(name), tuple(map(str, found)))


def _check(path: Path, config: "DFlashConfig", tensors: "Mapping[str, Tensor]") -> None:
    """Read back what was written.

    Raises:
        CheckpointError: it is not what was to be written.
    """
    from outrider.models.dflash.formats import read_drafter

    found = read_drafter(resolve(str(path)))
    expected = replace(config, origin=found.config.origin, num_target_layers=found.config.num_target_layers)
    if found.config != expected or set(found.checkpoint.tensors) != set(tensors):
        raise CheckpointError(f"{path} does not read back as it was written; this is a fault of outrider, report it.")


def _add_card(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}; the drafter beside it is whole.") from error


def _print(request: Request, trained: "Trained", path: Path, name: str) -> None:
    files = [file for file in request.out.iterdir() if file.is_file()]
    exported = Exported(
        path=str(path),
        format=request.format.value,
        dtype=request.dtype.value,
        step=trained.step,
        bytes=sum(file.stat().st_size for file in files),
        parameters=sum(tensor.numel() for tensor in trained.tensors.values()),
        target=name,
    )
    if request.as_json:
        sys.stdout.write(exported.model_dump_json(indent=1) + "\n")
        return
    from outrider.commands.train_export_card import own_command

    size = f"{exported.parameters / 1e6:.1f} million parameters, {exported.dtype}, {size_text(exported.bytes)}"
    for line in (
        f"{path}: step {exported.step}, {size}; reads back as it was written.",
        f"Try it: {own_command(str(path), name)}",
    ):
        stdout().print(Text(line), soft_wrap=True)
