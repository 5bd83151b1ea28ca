"""From what the command line names to a task: data checked against the target, a drafter, its first weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.errors import UsageError
from outrider.models.dflash.formats.writing import zlab_config
from outrider.train.documents import Split, split
from outrider.train.fingerprint import fingerprints
from outrider.train.lesson import Lesson
from outrider.train.manifest import Manifest
from outrider.train.network import Tables
from outrider.train.options import TrainOptions
from outrider.train.shape import Shape
from outrider.train.shards import read_samples
from outrider.train.start import Model, Nothing, Report, start_from, start_from_nothing
from outrider.train.task import Task

COUNTED = 4096  # documents whose words are counted at once


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
    tables = model.tables()
    if wish.init is None:
        start = start_from_nothing(model, Nothing(wish.shape, documents.train, counts_V, tables, options), report)
    else:
        start = start_from(wish.init, model, report)
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
