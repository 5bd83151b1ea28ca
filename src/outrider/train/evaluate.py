"""One measurement of a run: acceptance in the real engine, held-out loss, and whether training and serving agree.

All of it on documents and prompts that training never sees, with the mean of the weights over steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from outrider.errors import UsageError
from outrider.train.batches import Batch, DrawAnchors, Reader
from outrider.train.features import Read
from outrider.train.lesson import Lesson
from outrider.train.losses import Costs, Sums
from outrider.train.parting import parting
from outrider.train.probes import probes
from outrider.train.serving import Table, serve
from outrider.train.task import Task
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
        task: the run.

    Raises:
        UsageError: no held-out prompt fits the target's context.
    """

    def __init__(self, teacher: Teacher, task: Task) -> None:
        self._teacher, self._task = teacher, task
        self._table = _table(task)
        suspects = {0, task.config.vocab_size - 1, *task.stop_ids}  # what is taken for the mask token by mistake
        self._lessons = probes(task.config, task.lesson, suspects)
        self._batches: dict[DrawAnchors, list[tuple[Batch, Read]]] = {}

    def measure(self, tensors: Mapping[str, Tensor]) -> Evaluation:
        """Measure; the network must hold ``tensors`` already."""
        task = self._task
        held_out = self._score(task.lesson, self._teacher.costs, BATCHES)
        # The decayed cross-entropy, whatever the run's own loss is: its weights do not move with the guesses.
        plain = Costs(self._teacher.costs.gamma)
        found = {name: _probe(self._score(lesson, plain, 1)) for name, lesson in self._lessons.items()}
        self._batches.clear()
        acceptance = serve(self._table, task.config, tensors, task.tables.mask_embedding_H)
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
        options, rows = self._task.options, self._teacher.rows
        reader = Reader(
            self._task.split.held_out,
            rows=rows,
            row_length=options.row_length,
            anchors=options.anchors,
            block_size=self._task.config.block_size,
            seed=0,
            draw=draw,
        )
        steps = min(BATCHES, reader.steps(0))
        batches = [reader.read(0, step, slice(0, rows)).to(self._teacher.device) for step in range(steps)]
        return [(batch, self._teacher.read(batch)) for batch in batches]


def _table(task: Task) -> Table:
    """Choose prompts: the first held-out ones that fit."""
    held_out, options = task.split.held_out, task.options
    longest = task.target.shape.max_positions - options.evaluate_tokens
    prompts = dict.fromkeys(map(held_out.prompt, range(len(held_out))))
    fitting = [prompt for prompt in prompts if 0 < len(prompt) <= longest]
    if not fitting:
        raise UsageError(
            f"No held-out prompt and {options.evaluate_tokens} new tokens fit the target's context of "
            f"{task.target.shape.max_positions}; take fewer (evaluate_tokens)."
        )
    return Table(task.target, fitting[: options.evaluate_prompts], task.stop_ids, options.evaluate_tokens)


def _probe(sums: Sums) -> dict[str, Any]:
    return {"loss": sums.loss, "accuracy": sums.accuracy}
