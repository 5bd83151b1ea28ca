"""A drafter to start a run from: made for its target, taken from a checkpoint of a run, or read from any format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from outrider.checkpoint.checkpoint import Checkpoint
from outrider.checkpoint.source import resolve
from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats import fit, read_drafter, refuse
from outrider.models.dflash.loading import read_mask_embedding, read_weight
from outrider.models.loading import named
from outrider.models.weights import read_tensor
from outrider.train import state
from outrider.train.batches import Reader
from outrider.train.documents import Documents
from outrider.train.features import Features
from outrider.train.first_weights import fit_to_features, fit_to_head, fresh_weights
from outrider.train.mask_token import Words
from outrider.train.network import Tables
from outrider.train.options import TrainOptions
from outrider.train.shape import Shape, drafter_config
from outrider.train.task import config_from

Report = Callable[[str], None]
FITTED = 4  # rows that first weights are fitted to


@dataclass(frozen=True, slots=True)
class Model:
    """The target, as it was loaded.

    Attributes:
        target: on its device.
        checkpoint: its files.
        stop_ids: tokens that end its texts.
    """

    target: Decoder
    checkpoint: Checkpoint
    stop_ids: frozenset[int]

    def tables(self) -> Tables:
        """Read its embedding table and head."""
        checkpoint, tied = named(self.checkpoint), self.target.config.tied
        embedding_VH = read_tensor(checkpoint, "model.embed_tokens.weight")
        return Tables(embedding_VH, embedding_VH if tied else read_tensor(checkpoint, "lm_head.weight"))


@dataclass(frozen=True, slots=True)
class Start:
    """A drafter with its first weights.

    Attributes:
        config: what it is.
        weights: under z-lab names.
        mask_embedding_H: of drafters that bring one.
    """

    config: DFlashConfig
    weights: Mapping[str, Tensor]
    mask_embedding_H: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """What a drafter is made from where none is given.

    Attributes:
        shape: what the user said of it.
        documents: to train on.
        counts_V: how often each word occurs in them.
        tables: of the target.
        options: of the run.
    """

    shape: Shape
    documents: Documents
    counts_V: NDArray[np.int64]
    tables: Tables
    options: TrainOptions


def start_from_nothing(model: Model, nothing: Nothing, report: Report) -> Start:
    """Make a drafter for a target.

    Raises:
        UsageError: a shape or a mask token that will not do.
    """
    config = drafter_config(model.target.config, nothing.shape, _mask_token(model, nothing, report))
    weights = fresh_weights(config, nothing.options.seed)
    fit_to_features(weights, _some_features(model, config, nothing))
    fit_to_head(weights, nothing.tables.head_VH)
    report(
        f"A drafter from nothing: {config.num_layers} layers, taps {', '.join(map(str, config.taps))}, blocks of "
        f"{config.block_size}, mask token {config.mask_token}."
    )
    return Start(config, weights)


def _mask_token(model: Model, nothing: Nothing, report: Report) -> int:
    norms_V = nothing.tables.embedding_VH.float().norm(dim=1).double().numpy()
    words = Words(nothing.counts_V, norms_V, model.stop_ids)
    token = nothing.shape.mask_token
    if token is None:
        return words.mask_token()
    trouble = words.trouble(token)
    if trouble is not None:
        raise UsageError(f"Mask token {token}: {trouble}; choose another, or leave it out.")
    if nothing.counts_V[token]:
        report(
            f"Mask token {token} occurs {nothing.counts_V[token]} times in the data; one that no text has is better."
        )
    return token


def _some_features(model: Model, config: DFlashConfig, nothing: Nothing) -> Tensor:
    """Read a few rows with the target."""
    length = nothing.options.row_length
    reader = Reader(nothing.documents, rows=FITTED, row_length=length, anchors=1, block_size=config.block_size, seed=0)
    batch = reader.read(0, 0, slice(0, FITTED)).to(model.target.device)
    read = Features(model.target, config.taps, rows=FITTED, row_length=length).read(batch)
    return read.features_BTF[batch.document_BT >= 0].cpu()


def start_from(init: str, model: Model, report: Report) -> Start:
    """Take a checkpoint of a run, its mean over steps, or a drafter in any format that is read.

    Raises:
        OutriderError: it is missing, damaged, or does not fit the target.
    """
    path = Path(init).expanduser()
    if (path / state.STATE).is_file():
        config, weights = drafter_of(path)
        refuse(f"{path} with this target", fit(config, model.target.config), ())
        return Start(config, weights)
    draft = read_drafter(resolve(init, report=report))
    refuse(f"{path} with this target", fit(draft.config, model.target.config), draft.allow)
    weights = {name: read_weight(draft, name) for name in draft.config.tensor_shapes()}
    return Start(draft.config, weights, read_mask_embedding(draft))


def drafter_of(checkpoint: Path) -> tuple[DFlashConfig, dict[str, Tensor]]:
    """Return the drafter that a checkpoint of a run holds: its config and the mean of its weights over steps.

    Raises:
        CheckpointError: it is damaged or gone.
    """
    found = state.load(checkpoint)
    return config_from(found.progress.run["config"]), dict(found.means)
