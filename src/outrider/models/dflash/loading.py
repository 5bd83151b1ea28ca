"""From a drafter's files to a network on its target. The one part of the formats that reads values."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.errors import CheckpointError, UsageError
from outrider.models.dflash.formats import DraftCheckpoint, fit, refuse
from outrider.models.dflash.formats.aliases import MASK_EMBEDDING
from outrider.models.dflash.formats.examine import SIDECAR

if TYPE_CHECKING:
    from torch import Tensor

    from outrider.models.decoder import Decoder
    from outrider.models.dflash.network import DFlash


def load_dflash(draft: DraftCheckpoint, target: "Decoder", *, dummy: bool = False) -> "DFlash":
    """Build the drafter on its target.

    Args:
        draft: made by ``read_drafter``.
        target: what it drafts for.
        dummy: random weights of the right shapes: for shapes and speed, not for drafts that are accepted.

    Raises:
        CheckpointError: it does not fit the target, or its values are damaged or impossible.
    """
    from outrider.models.dflash.network import DFlash

    misfits = fit(draft.config, target.config)
    refuse(f"{draft.checkpoint.source.path} with this target", misfits, draft.allow)
    _check_allowed(draft, {problem.key for problem in (*draft.problems, *misfits)})
    if dummy:
        return _dummy(draft, target)
    return DFlash(draft.config, lambda name: read_weight(draft, name), target, read_mask_embedding(draft))


def _check_allowed(draft: DraftCheckpoint, keys: set[str]) -> None:
    """Refuse to allow what was not found wrong: a typing error would otherwise show nowhere."""
    idle = [key for key in draft.allow if key not in keys]
    if idle:
        found = f"found wrong: {', '.join(sorted(keys))}" if keys else "nothing was found wrong"
        raise UsageError(f"--allow {idle[0]}: expected the key of a problem of this drafter; {found}. Drop it.")


def _dummy(draft: DraftCheckpoint, target: "Decoder") -> "DFlash":
    import torch

    from outrider.models.dflash.network import DFlash
    from outrider.models.tiny import random_tensors

    mask = torch.ones(draft.config.hidden_size) if draft.config.mask_embedding else None
    return DFlash(draft.config, random_tensors(draft.config), target, mask)


def read_weight(draft: DraftCheckpoint, name: str) -> "Tensor":
    """Read one tensor under its z-lab name; ``d2t`` as offsets, whatever the format."""
    from outrider.models.weights import read_tensor

    tensor = read_tensor(draft.checkpoint, name)
    return _offsets(draft, tensor) if name == "d2t" else tensor


def _offsets(draft: DraftCheckpoint, table: "Tensor") -> "Tensor":
    """Return how far each of the drafter's words lies from its target id; GGUF stores the id itself."""
    import torch

    own = torch.arange(len(table))
    words = table.to(torch.int64) + (0 if draft.config.origin == "gguf" else own)
    lowest, highest, different = int(words.amin()), int(words.amax()), len(set(words.tolist()))
    if lowest < 0 or highest >= draft.config.vocab_size or different < len(words):
        raise CheckpointError(
            f"{draft.checkpoint.source.path}: expected d2t to name {len(words)} different words of "
            f"{draft.config.vocab_size}, found ids from {lowest} to {highest}, {different} of them different. "
            "The table is damaged or of another drafter."
        )
    return words - own


def read_mask_embedding(draft: DraftCheckpoint) -> "Tensor | None":
    """Read the vector that stands in masked slots, [H], of a drafter that has one."""
    if not draft.config.mask_embedding:
        return None
    if MASK_EMBEDDING in draft.checkpoint.tensors:
        return read_weight(draft, MASK_EMBEDDING).flatten()
    return _sidecar(draft.checkpoint.source.path / SIDECAR, draft)


def _sidecar(path: Path, draft: DraftCheckpoint) -> "Tensor":
    """Read ``mask_embedding.pt``: a tensor, or one with the mask token it stands for. No code in it is run."""
    import torch

    try:
        with warnings.catch_warnings(action="ignore"):  # of pickles that it then refuses or reads
            held = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # its reader of pickles lets out whatever damage leads to
        raise CheckpointError(
            f"Cannot read {path} ({type(error).__name__}): it is damaged, or holds more than a tensor, which could run "
            "code. Save the vector again, by torch.save."
        ) from error
    token = draft.config.mask_token
    if isinstance(held, dict):
        token, held = held.get("mask_token_id", token), held.get("embedding")
    if not isinstance(held, torch.Tensor) or held.numel() != draft.config.hidden_size:
        found = list(held.shape) if isinstance(held, torch.Tensor) else type(held).__name__
        raise CheckpointError(f"{path}: expected a vector of {draft.config.hidden_size}, found {found}.")
    if draft.config.mask_token not in (None, token):
        raise CheckpointError(
            f"{path} is for the mask token {token}, the config names {draft.config.mask_token}; one of them belongs to "
            "another drafter."
        )
    return held.flatten()
