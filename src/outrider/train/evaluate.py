"""One measurement of a run: acceptance in the real engine, held-out loss, and whether training and serving agree.

All of it on documents and prompts that training never sees, with the mean of the weights over steps.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from outrider.models.dflash.config import DFlashConfig
from outrider.train.batches import Batch, DrawAnchors, Reader
from outrider.train.documents import Documents
from outrider.train.features import Read
from outrider.train.lesson import Lesson
from outrider.train.losses import Costs, Sums
from outrider.train.options import TrainOptions
from outrider.train.parting import parting
from outrider.train.probes import probes
from outrider.train.serving import Table, serve
from outrider.train.teacher import Teacher

BATCHES = 4  # of held-out documents, at most


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a measurement found.

    Attributes:
        tau, tau_low, tau_high: acceptance length, with its bootstrap interval over prompts.
        position_rates: u_1, u_2, ...
        marginal_accuracy: of each slot, as trained, on held-out text.
        held_out_loss: of the same text, as trained.
        probes: loss and accuracy of lessons that differ in one thing.
        prompts: held-out prompts that were decoded.
        warnings: one sentence each.
    """

    tau: float
    tau_low: float
    tau_high: float
    position_rates: list[float]
    marginal_accuracy: list[float]
    held_out_loss: float
    probes: dict[str, dict[str, Any]]
    prompts: int
    warnings: list[str]


class Evaluator:
    """Measures a drafter in training.

    Args:
        teacher: runs lessons.
        documents: held out.
        options: of the run.
        config: what is served.
        taught: the lesson of the run.
        table: where it is served.
        suspects: tokens that are taken for the mask token by mistake.
    """

    def __init__(
        self,
        teacher: Teacher,
        documents: Documents,
        options: TrainOptions,
        *,
        config: DFlashConfig,
        taught: Lesson,
        table: Table,
        suspects: Collection[int],
    ) -> None:
        self._teacher, self._config, self._taught, self._table = teacher, config, taught, table
        self._documents, self._options = documents, options
        self._lessons = probes(config, taught, suspects)
        self._batches: dict[DrawAnchors, list[tuple[Batch, Read]]] = {}

    def measure(self, tensors: Mapping[str, Tensor], mask_embedding: Tensor | None) -> Evaluation:
        """Measure; the network must hold ``tensors`` already."""
        held_out = self._score(self._taught, self._teacher.costs, BATCHES)
        # The decayed cross-entropy, whatever the run's own loss is: its weights do not move with the guesses.
        plain = Costs(self._teacher.costs.gamma)
        found = {name: _probe(self._score(lesson, plain, 1)) for name, lesson in self._lessons.items()}
        self._batches.clear()
        acceptance = serve(self._table, self._config, tensors, mask_embedding)
        length = acceptance.intervals().length
        assert length is not None  # noqa: S101 -- every prompt has at least one round
        rates = list(acceptance.position_rates)
        return Evaluation(
            tau=length.value,
            tau_low=length.low,
            tau_high=length.high,
            position_rates=rates,
            marginal_accuracy=held_out.accuracy,
            held_out_loss=held_out.loss,
            probes=found,
            prompts=len(self._table.prompts),
            warnings=[f"{one.code}: {one.text}" for one in parting(found, held_out.accuracy, rates)],
        )

    @torch.no_grad()
    def _score(self, lesson: Lesson, costs: Costs, most: int) -> Sums:
        if lesson.draw not in self._batches:
            self._batches[lesson.draw] = self._read(lesson.draw)
        total = self._teacher.nothing()
        for batch, read in self._batches[lesson.draw][:most]:
            total = total + self._teacher.teach(batch, read, lesson, costs=costs)[1]
        return total

    def _read(self, draw: DrawAnchors) -> list[tuple[Batch, Read]]:
        """Batches of held-out documents, always the same ones."""
        options, rows = self._options, self._teacher.rows
        reader = Reader(
            self._documents,
            rows=rows,
            row_length=options.row_length,
            anchors=options.anchors,
            block_size=self._config.block_size,
            seed=0,
            draw=draw,
        )
        steps = min(BATCHES, reader.steps(0))
        batches = [reader.read(0, step, slice(0, rows)).to(self._teacher.device) for step in range(steps)]
        return [(batch, self._teacher.read(batch)) for batch in batches]


def _probe(sums: Sums) -> dict[str, Any]:
    return {"loss": sums.loss, "accuracy": sums.accuracy}
