"""The run: batches, steps, the log, measurements and checkpoints, until its end or until it is stopped.

    batch, target's features -> blocks -> network -> loss -> gradients     as often as one step gathers
    sums over processes -> optimizers -> mean over steps

Nothing in a step asks the device a question; it is waited for when a line of the log is due.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from outrider.errors import UsageError
from outrider.train import state
from outrider.train.counts import Counts, Stopwatch
from outrider.train.distributed import Group
from outrider.train.evaluate import Evaluation, Evaluator
from outrider.train.log import MetricsLog
from outrider.train.losses import Costs, Sums
from outrider.train.network import DraftNetwork
from outrider.train.optimizer import Average, Optimizers, learning_rate
from outrider.train.serving import Table
from outrider.train.stop import Reason, Stop, stopping
from outrider.train.task import Task, config_record
from outrider.train.teacher import Precision, Teacher

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run, or a piece of one, ended.

    Attributes:
        reason: why.
        step: steps taken so far.
        steps: of the whole run.
        checkpoint: the newest one.
        evaluation: the last measurement of this piece.
    """

    reason: Literal["complete"] | Reason
    step: int
    steps: int
    checkpoint: Path | None
    evaluation: Evaluation | None


class Trainer:
    """Runs a task.

    Args:
        task: what to do.
        group: the processes that do it.
        report: is told, line by line, how it goes.
    """

    def __init__(self, task: Task, group: Group, report: Report) -> None:
        options, config, device = task.options, task.config, task.target.device
        self._task, self._group, self._report = task, group, report if group.first else _silent
        self._reader = task.reader(group.world)
        self._steps = task.steps(self._reader)
        precision = Precision.of(options, device, sinks=config.sinks)
        self.network = DraftNetwork(config, task.tables.to(device, precision.dtype)).to(device)
        self.network.take(task.start)
        if precision.flex and device.type == "cuda":
            self.network.compile_layers()
        self._model = group.wrap(self.network)
        self._teacher = Teacher(
            task.target,
            self.network,
            Costs.of(options, config.block_size),
            precision,
            rows=options.rows,
            row_length=options.row_length,
        )
        self._optimizers, self.average = Optimizers(self.network, options), Average(self.network, options.ema)
        self._counts, self._watch = Counts(config.max_tokens, config.block_size, device), Stopwatch(device)
        self._progress = state.Progress(run=task.identity(group.world))
        self._evaluator = self._make_evaluator()
        self._evaluation: Evaluation | None = None
        self._written: Path | None = None
        self._log: MetricsLog | None = None
        self._since = 0.0

    def _make_evaluator(self) -> Evaluator:
        task, options = self._task, self._task.options
        longest = task.target.shape.max_positions - options.evaluate_tokens
        prompts = dict.fromkeys(map(task.split.held_out.prompt, range(len(task.split.held_out))))
        fitting = [prompt for prompt in prompts if 0 < len(prompt) <= longest]
        if not fitting:
            raise UsageError(
                f"No held-out prompt and {options.evaluate_tokens} new tokens fit the target's context of "
                f"{task.target.shape.max_positions}; take fewer (evaluate_tokens)."
            )
        table = Table(task.target, fitting[: options.evaluate_prompts], task.stop_ids, options.evaluate_tokens)
        suspects = {0, task.config.vocab_size - 1, *task.stop_ids}
        return Evaluator(
            self._teacher,
            task.split.held_out,
            options,
            config=task.config,
            taught=task.lesson,
            table=table,
            suspects=suspects,
        )

    def run(self, *, resume: bool = False, minutes: float | None = None) -> Ended:
        """Take steps until the run is complete, is interrupted, or time is up; a checkpoint is left in any case.

        Args:
            resume: go on from the newest checkpoint, if there is one.
            minutes: at most, from now.

        Raises:
            UsageError: the loss is no number any more, the disk is full, or the folder holds another run.
        """
        self._open(resume=resume)
        with stopping(minutes=minutes) as stop:
            reason = self._go(stop)
        return Ended(reason, self._progress.step, self._steps, self._written, self._evaluation)

    def _open(self, *, resume: bool) -> None:
        """Take the newest checkpoint up, or make sure that nobody's run is overwritten."""
        folder, found = self._task.folder, state.checkpoints(self._task.folder)
        if found and not resume:
            raise UsageError(
                f"{folder} holds a run, up to {found[-1].name}: go on with --resume, or choose another folder with "
                "--out."
            )
        if found:
            self._restore(state.load(found[-1]))
            self._written = found[-1]
            self._report(f"Going on from {found[-1].name} of {self._steps} steps.")
        self._log = MetricsLog(folder, self._header(), step=self._progress.step) if self._group.first else None
        self._since = time.perf_counter()

    def _header(self) -> dict[str, Any]:
        from outrider.provenance import provenance

        task = self._task
        return {
            "config": config_record(task.config),
            "options": asdict(task.options),
            "steps": self._steps,
            "processes": self._group.world,
            "provenance": provenance(seed=task.options.seed).model_dump(),
        } | task.facts

    def _restore(self, found: state.Checkpoint) -> None:
        self._task.check_same(found.progress.run, self._group.world)
        self._progress = found.progress
        self.network.take(found.weights)
        self.average.restore(found.means)
        self._optimizers.restore(found.optimizers)
        self._counts.restore(found.progress.counted)

    def _go(self, stop: Stop) -> Literal["complete"] | Reason:
        options, progress = self._task.options, self._progress
        if progress.step == 0 and options.evaluate_every:
            self._evaluate()
        while progress.step < self._steps:
            asked = self._step(stop)
            last = progress.step == self._steps
            if last or progress.step % options.log_every == 0:
                self._write_line()
            if last or (options.evaluate_every and progress.step % options.evaluate_every == 0):
                self._evaluate()
            if last or asked or progress.step % options.checkpoint_every == 0 or progress.step in options.keep_steps:
                self._save()
            if asked and not last:
                return stop.reason or "interrupted"
        return "complete"

    def _step(self, stop: Stop) -> bool:
        """Take a step; return whether any process was asked to stop."""
        progress, options, group = self._progress, self._task.options, self._group
        sums, own_responses = self._teacher.nothing(), 0
        for part in range(options.accumulation):
            counted, responses = self._gather(part, last=part == options.accumulation - 1)
            sums, own_responses = sums + counted, own_responses + responses
        group.add_up(sums.values)
        rate = learning_rate(options, progress.step, self._steps)
        # The mean over processes becomes the sum, and the sum over slots the mean by their weights.
        length = self._optimizers.step(rate, group.world / sums.weight)
        asked, all_responses = group.total([stop.wanted, own_responses])
        progress.step += 1
        progress.tokens += round(all_responses)
        self.average.update(progress.step)
        self._counts.add_step(sums, length, round(all_responses))
        progress.within += 1
        if progress.within == self._reader.steps(progress.epoch):
            progress.epoch, progress.within = progress.epoch + 1, 0
        return asked > 0

    def _gather(self, part: int, *, last: bool) -> tuple[Sums, int]:
        """Add the gradients of one batch to those that there are; return counts and response tokens."""
        options, group, progress = self._task.options, self._group, self._progress
        start = (group.rank * options.accumulation + part) * options.rows
        batch = self._reader.read(progress.epoch, progress.within, slice(start, start + options.rows))
        self._counts.add_batch(batch.facts)
        batch = batch.to(self._task.target.device)
        with self._watch.running():
            read = self._teacher.read(batch)
        with group.gathering(self._model, last=last):
            loss, sums = self._teacher.teach(batch, read, self._task.lesson, model=self._model)
            loss.backward()  # type: ignore[no-untyped-call]
        return sums, batch.facts.responses

    def _pause(self) -> None:
        """Wait for the device, see that all is well, and take the time of the steps so far."""
        if not self._counts.finite:
            raise UsageError(self._broken())
        now = time.perf_counter()
        self._counts.add_time(now - self._since, self._watch.take())
        self._since = now

    def _broken(self) -> str:
        found = state.checkpoints(self._task.folder)
        good = f"the last good checkpoint is {found[-1]}" if found else "there is no checkpoint before it"
        first = self._progress.step - self._counts.steps + 1
        return (
            f"The loss is not a finite number between steps {first} and {self._progress.step}: {good}. Begin another "
            "run from it with --init, a lower --lr and another --out."
        )

    def _write_line(self) -> None:
        """Write what happened since the line before."""
        self._pause()
        line = self._counts.line()
        rate = learning_rate(self._task.options, self._progress.step - 1, self._steps)
        self._add({"kind": "step"} | self._place() | {"lr": rate} | line)
        self._report(_told(self._progress.step, self._steps, line))
        self._counts.clear()

    def _place(self) -> dict[str, Any]:
        progress = self._progress
        return {"step": progress.step, "tokens": progress.tokens, "epoch": progress.epoch}

    def _add(self, line: dict[str, Any]) -> None:
        if self._log is not None:
            self._log.add(line)

    def _evaluate(self) -> None:
        self._pause()
        if self._group.first:
            with self.average.in_place():
                found = self._evaluator.measure(self.average.tensors(), self._task.tables.mask_embedding_H)
            self._evaluation = found
            self._add({"kind": "evaluation"} | self._place() | asdict(found))
            self._report(
                f"step {self._progress.step}: acceptance length {found.tau:.2f} ({found.tau_low:.2f} to "
                f"{found.tau_high:.2f}) on {found.prompts} held-out prompts, held-out loss {found.held_out_loss:.3f}"
            )
            for warning in found.warnings:
                self._report(f"warning: {warning}")
        self._group.wait()
        self._since = time.perf_counter()

    def _save(self) -> None:
        self._pause()
        if self._group.first:
            self._progress.counted = self._counts.state()
            checkpoint = state.Checkpoint(
                self._progress, self.network.weights(), self.average.tensors(), self._optimizers.state()
            )
            options = self._task.options
            self._written = state.save(self._task.folder, checkpoint)
            state.prune(self._task.folder, keep=options.keep, steps=options.keep_steps)
        self._group.wait()
        self._since = time.perf_counter()


def _told(step: int, steps: int, line: dict[str, Any]) -> str:
    accuracy = line["slot_accuracy"]
    left = line["seconds"] * (steps - step) / 60
    return (
        f"step {step}/{steps}  loss {line['loss']:.3f}  slot 1 {accuracy[0]:.1%}, mean "
        f"{sum(accuracy) / len(accuracy):.1%}  {line['tokens_per_second']:,.0f} tokens/s, "
        f"{line['seconds']:.3f} s a step, {line['target_share']:.0%} of it the target  {left:.0f} min left"
    )


def _silent(_line: str) -> None:
    pass
