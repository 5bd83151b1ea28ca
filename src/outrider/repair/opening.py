"""Opens a drafter whose config is missing or not believed: its tensors under z-lab's names, and any config it has.

Headers only, no torch. A GGUF file carries its config and is not opened here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from outrider.checkpoint import Checkpoint, Source, resolve
from outrider.checkpoint.folder import read_headers, read_json
from outrider.errors import CheckpointError, UsageError
from outrider.models.dflash.formats import refuse
from outrider.models.dflash.formats.aliases import MASK_EMBEDDING, folder_name, named
from outrider.models.dflash.formats.examine import SIDECAR
from outrider.repair.infer import Shapes

CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class Unsure:
    """A drafter's files.

    Attributes:
        checkpoint: tensors under z-lab's names; its config is what config.json holds, empty where there is none.
        mask_embedding: whether it brings a vector of its own for masked slots.
        notes: what was passed over.
    """

    checkpoint: Checkpoint
    mask_embedding: bool
    notes: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.checkpoint.source.path

    @property
    def shapes(self) -> Shapes:
        """Shapes of the tensors, without the vector for masked slots."""
        return {name: info.shape for name, info in self.checkpoint.tensors.items() if name != MASK_EMBEDDING}


def open_unsure(name: str, *, report: Callable[[str], None]) -> Unsure:
    """Read the headers of a drafter.

    Args:
        name: a folder, or ``owner/name`` on the hub.
        report: is told what takes long.

    Raises:
        CheckpointError: no weights, damaged ones, or tensors of a kind of drafter that is not run.
        UsageError: a GGUF file.
    """
    source = _source(name, report)
    config, notes = _config(source.path / CONFIG)
    found = named(Checkpoint(source, config, read_headers(source.path)), folder_name)
    refuse(str(source.path), found.problems, ())
    mask = MASK_EMBEDDING in found.tensors or (source.path / SIDECAR).is_file()
    return Unsure(Checkpoint(source, config, found.tensors), mask, notes)


def _source(name: str, report: Callable[[str], None]) -> Source:
    path = Path(name).expanduser()
    if path.is_dir():
        return Source(path, "folder", f"folder {path}")
    source = resolve(name, report=report)
    if source.kind == "gguf":
        raise UsageError(f"{name} is a GGUF file, which carries its config; give the folder with the safetensors.")
    return source


def _config(path: Path) -> tuple[dict[str, object], tuple[str, ...]]:
    if not path.is_file():
        return {}, ()
    try:
        return read_json(path), ()
    except CheckpointError as error:
        return {}, (f"Not used: {error}",)
