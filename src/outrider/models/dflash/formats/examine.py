"""From a drafter's files to one form for all formats, with everything that keeps it from running as it was trained.

Knows folders of z-lab and speculators and GGUF files; headers only, no torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from outrider.checkpoint import Checkpoint, Source
from outrider.checkpoint.folder import open_folder
from outrider.checkpoint.gguf import open_gguf_file
from outrider.errors import UnsupportedError
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.aliases import MASK_EMBEDDING, Named, folder_name, named
from outrider.models.dflash.formats.checks import config_problems, tensor_problems
from outrider.models.dflash.formats.gguf import ARCHITECTURE, gguf_keys, gguf_name, read_gguf, with_tied_head
from outrider.models.dflash.formats.keys import Keys, shown
from outrider.models.dflash.formats.problems import Problem, refuse
from outrider.models.dflash.formats.shape import MaskToken
from outrider.models.dflash.formats.speculators import is_speculators, read_speculators, speculators_keys
from outrider.models.dflash.formats.zlab import ARCHITECTURES, NESTED, read_zlab, zlab_keys

SIDECAR = "mask_embedding.pt"
SIGNS = (NESTED, "target_layer_ids", "markov_rank", "block_size")


@dataclass(frozen=True, slots=True)
class DraftCheckpoint:
    """A drafter that may be run.

    Attributes:
        checkpoint: its files, tensors under z-lab names.
        config: what it is.
        problems: those that remain because they are allowed.
        notes: defaults that were taken, and what was passed over.
        allow: keys of problems that are passed over.
    """

    checkpoint: Checkpoint
    config: DFlashConfig
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    allow: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """All that the headers of a drafter say.

    Attributes:
        checkpoint: its files, tensors under z-lab names.
        format: which kind of config.
        config: what it is; None where keys without which there is none are missing or impossible.
        problems: what keeps it from running as it was trained.
        notes: defaults that were taken, and what was passed over.
    """

    checkpoint: Checkpoint
    format: str
    config: DFlashConfig | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def read_drafter(source: Source, *, allow: Sequence[str] = ()) -> DraftCheckpoint:
    """Open a drafter that is to be run.

    Args:
        source: its folder or file.
        allow: keys of problems to pass over.

    Raises:
        CheckpointError: no drafter, damaged, or something that is not allowed keeps it from running as trained.
        UnsupportedError: a kind of file or storage that is not read.
    """
    found = examine(source)
    refuse(str(source.path), found.problems, allow)
    assert found.config is not None  # noqa: S101 -- without one there is a problem that nothing allows
    return DraftCheckpoint(found.checkpoint, found.config, found.problems, found.notes, tuple(allow))


def examine(source: Source) -> Examined:
    """Read the headers of a drafter and find all that is wrong with it.

    Raises:
        CheckpointError: no drafter, or damaged.
        UnsupportedError: a kind of file or storage that is not read.
    """
    return _examine_gguf(source) if source.kind == "gguf" else _examine_folder(source)


def _examine_folder(source: Source) -> Examined:
    checkpoint = open_folder(source, needed=())
    raw = checkpoint.config
    if not is_speculators(raw) and not _is_zlab(raw):
        raise UnsupportedError(
            f"{source.path} is no DFlash drafter: its config.json has architectures {shown(raw.get('architectures'))} "
            f"and none of {', '.join(SIGNS)}."
        )
    found = named(checkpoint, folder_name)
    mask = MaskToken(MASK_EMBEDDING in found.tensors or (source.path / SIDECAR).is_file())
    if is_speculators(raw):
        parts = speculators_keys(raw)
        config = read_speculators(parts, found.tensors, mask)
        return _examined(checkpoint, "speculators", found, config, parts)
    keys = zlab_keys(raw)
    return _examined(checkpoint, "z-lab", found, read_zlab(keys, found.tensors, mask), (keys,))


def _is_zlab(raw: Mapping[str, Any]) -> bool:
    architectures = raw.get("architectures")
    named_so = isinstance(architectures, list) and any(name in ARCHITECTURES for name in architectures)
    return named_so or any(key in raw for key in SIGNS)


def _examine_gguf(source: Source) -> Examined:
    checkpoint = open_gguf_file(source, architectures=(ARCHITECTURE,), name_of=gguf_name)
    found = named(checkpoint, lambda name: name)
    tensors = with_tied_head(found.tensors)
    tensors.pop("rope_freqs.weight", None)  # configuration, read as such
    keys = gguf_keys(checkpoint.metadata)
    config = read_gguf(keys, checkpoint, tensors, MaskToken(MASK_EMBEDDING in tensors))
    return _examined(checkpoint, "gguf", replace(found, tensors=tensors), config, (keys,))


def _examined(checkpoint: Checkpoint, kind: str, found: Named, config: DFlashConfig, parts: Sequence[Keys]) -> Examined:
    problems = [*found.problems, *(problem for keys in parts for problem in keys.problems)]
    notes = [note for keys in parts for note in keys.notes]
    if found.ignored:
        notes.append(f"Not used: {', '.join(found.ignored)}.")
    readable = not any(problem.fatal for keys in parts for problem in keys.problems)
    if readable:
        problems = [*config_problems(config), *problems, *tensor_problems(config, found.tensors)]
    named_checkpoint = replace(checkpoint, tensors=found.tensors)
    return Examined(named_checkpoint, kind, config if readable else None, tuple(problems), tuple(notes))
