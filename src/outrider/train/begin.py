"""From what the command line names to a task: data checked against the target, a drafter, its first weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from outrider.checkpoint.checkpoint import Checkpoint
from outrider.checkpoint.source import resolve
from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats import fit, read_drafter, refuse
from outrider.models.dflash.formats.writing import zlab_config
from outrider.models.dflash.loading import _mask_embedding, _read
from outrider.models.weights import read_tensor
from outrider.train import state
from outrider.train.documents import Split, split
from outrider.train.fingerprint import fingerprints
from outrider.train.lesson import Lesson
from outrider.train.manifest import Manifest
from outrider.train.mask_token import Words
from outrider.train.network import Tables
from outrider.train.optimizer import fresh_weights
from outrider.train.options import TrainOptions
from outrider.train.shape import Shape, drafter_config
from outrider.train.shards import read_samples
from outrider.train.task import Task, config_from

Report = Callable[[str], None]
COUNTED = 4096  # documents whose words are counted at once


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user asked for.

    Attributes:
        data: folder of samples.
        out: folder of the run.
        shape: of a drafter that starts from nothing.
        init: a drafter or a checkpoint to start from, in place of ``shape``.
        other_target: train on what another target wrote.
        options: settings.
    """

    data: Path
    out: Path
    shape: Shape
    init: str | None
    other_target: bool
    options: TrainOptions


def begin(model: Model, wish: Wish, report: Report) -> Task:
    """Read data and drafter and return the task.

    Raises:
        OutriderError: something is missing, damaged, or does not fit.
    """
    samples, options = read_samples(wish.data), wish.options
    _check_target(samples.manifest, model, wish)
    documents = split(samples, share=options.held_out, row_length=options.row_length, where=str(wish.data))
    counts_V = _count(documents, model.target.config.vocab_size, wish.data)
    tables = _tables(model)
    if wish.init is None:
        start = _fresh(model, wish, Words(counts_V, _norms(tables.embedding_VH), model.stop_ids), report)
    else:
        start = _given(wish.init, model, report)
    zlab_config(start.config)  # what no format has words for would be found out at the end of the run
    _tell(documents, report)
    return Task(
        target=model.target,
        tables=Tables(tables.embedding_VH, tables.head_VH, start.mask_embedding_H),
        stop_ids=model.stop_ids,
        split=documents,
        config=start.config,
        options=options,
        start=start.weights,
        folder=wish.out,
        lesson=Lesson.served(start.config),
        facts=_facts(samples.manifest, documents, wish),
    )


def _check_target(manifest: Manifest, model: Model, wish: Wish) -> None:
    """Refuse what another target wrote: a drafter learns its target's own words."""
    if not wish.other_target and manifest.target.files != fingerprints(model.checkpoint):
        raise UsageError(
            f"{wish.data} was written by {manifest.target.name}, whose files are not those of "
            f"{model.checkpoint.source.path}: make data with this target, or give --other-target to train on it all "
            "the same."
        )


def _count(documents: Split, vocabulary: int, where: Path) -> NDArray[np.int64]:
    """Count the words of all documents."""
    counts_V = np.zeros(vocabulary, np.int64)
    for part in (documents.train, documents.held_out):
        for first in range(0, len(part), COUNTED):
            some = range(first, min(first + COUNTED, len(part)))
            found = np.bincount(np.concatenate([part.tokens(index) for index in some]))
            if len(found) > vocabulary:
                raise UsageError(
                    f"{where} holds the token {len(found) - 1}; the target has {vocabulary} words. The data is of "
                    "another target."
                )
            counts_V[: len(found)] += found
    return counts_V


def _tables(model: Model) -> Tables:
    name = "model.embed_tokens.weight"
    embedding_VH = read_tensor(model.checkpoint, name)
    tied = model.target.config.tied
    return Tables(embedding_VH, embedding_VH if tied else read_tensor(model.checkpoint, "lm_head.weight"))


def _norms(embedding_VH: Tensor) -> NDArray[np.float64]:
    norms_V: NDArray[np.float64] = embedding_VH.float().norm(dim=1).double().numpy()
    return norms_V


def _fresh(model: Model, wish: Wish, words: Words, report: Report) -> Start:
    token = words.mask_token() if wish.shape.mask_token is None else wish.shape.mask_token
    trouble = words.trouble(token)
    if trouble is not None:
        raise UsageError(f"Mask token {token}: {trouble}; choose another, or leave it out.")
    if words.counts_V[token]:
        report(f"Mask token {token} occurs {words.counts_V[token]} times in the data; one that no text has is better.")
    config = drafter_config(model.target.config, wish.shape, token)
    report(
        f"A drafter from nothing: {config.num_layers} layers, taps {', '.join(map(str, config.taps))}, blocks of "
        f"{config.block_size}, mask token {token}."
    )
    return Start(config, fresh_weights(config, wish.options.seed))


def _given(init: str, model: Model, report: Report) -> Start:
    """Take a checkpoint of a run, its mean over steps, or a drafter in any format that is read."""
    path = Path(init).expanduser()
    if (path / state.STATE).is_file():
        config, weights = drafter_of(path)
        refuse(f"{path} with this target", fit(config, model.target.config), ())
        return Start(config, weights)
    draft = read_drafter(resolve(init, report=report))
    refuse(f"{path} with this target", fit(draft.config, model.target.config), draft.allow)
    weights = {name: _read(draft, name) for name in draft.config.tensor_shapes()}
    return Start(draft.config, weights, _mask_embedding(draft))


def drafter_of(checkpoint: Path) -> tuple[DFlashConfig, dict[str, Tensor]]:
    """Return the drafter that a checkpoint of a run holds: its config and the mean of its weights over steps.

    Raises:
        CheckpointError: it is damaged or gone.
    """
    found = state.load(checkpoint)
    return config_from(found.progress.run["config"]), dict(found.means)


def _facts(manifest: Manifest, documents: Split, wish: Wish) -> dict[str, Any]:
    return {
        "target": manifest.target.name,
        "init": wish.init,
        "data": {
            "samples": manifest.samples,
            "documents": len(documents.train),
            "held_out_documents": len(documents.held_out),
            "response_tokens": documents.train.response_tokens,
            "cut_tokens": documents.cut_tokens,
            "unused": documents.unused,
            "sources": {source.name: source.samples for source in manifest.sources},
            "temperatures": [list(pair) for pair in manifest.settings.temperatures],
        },
    }


def _tell(documents: Split, report: Report) -> None:
    train, held_out = documents.train, documents.held_out
    report(
        f"{len(train)} documents with {train.response_tokens:,} response tokens to train on, {len(held_out)} held out."
    )
    if documents.cut_tokens or documents.unused:
        report(
            f"{documents.cut_tokens:,} tokens lie beyond a row's length and are not read; {documents.unused} samples "
            "have no response within it."
        )
