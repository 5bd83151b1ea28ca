"""The run: steps, the log, measurements and checkpoints, until its end or until it is stopped."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from outrider.errors import UsageError
from outrider.train import state
from outrider.train.distributed import Group
from outrider.train.evaluate import Evaluation, Evaluator
from outrider.train.learner import Learner
from outrider.train.log import MetricsLog
from outrider.train.stop import Reason, Stop, stopping
from outrider.train.task import Task, config_record

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
        self._task, self._group, self._report = task, group, report if group.first else _silent
        self._learner = Learner(task, group)
        self._evaluator = Evaluator(self._learner.teacher, task)
        self._evaluation: Evaluation | None = None
        self._written: Path | None = None
        self._log: MetricsLog | None = None

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
        return Ended(reason, self._learner.progress.step, self._learner.steps, self._written, self._evaluation)

    def _open(self, *, resume: bool) -> None:
        """Take the newest checkpoint up, or make sure that nobody's run is overwritten."""
        folder, learner, found = self._task.folder, self._learner, state.checkpoints(self._task.folder)
        if found and not resume:
            raise UsageError(
                f"{folder} holds a run, up to {found[-1].name}: go on with --resume, or choose another folder with "
                "--out."
            )
        if found:
            learner.restore(state.load(found[-1]))
            self._written = found[-1]
            self._report(f"Going on from {found[-1].name} of {learner.steps} steps.")
        if self._group.first:
            self._log = MetricsLog(folder, self._header(), step=learner.progress.step)
        learner.go_on()

    def _header(self) -> dict[str, Any]:
        from outrider.provenance import provenance

        task = self._task
        return {
            "config": config_record(task.config),
            "options": asdict(task.options),
            "steps": self._learner.steps,
            "processes": self._group.world,
            "provenance": provenance(seed=task.options.seed).model_dump(),
        } | task.facts

    def _go(self, stop: Stop) -> Literal["complete"] | Reason:
        options, learner = self._task.options, self._learner
        if learner.progress.step == 0 and options.evaluate_every:
            self._evaluate()
        while (step := learner.progress.step) < learner.steps:
            rate, asked = learner.rate, learner.step(stop=stop.wanted)
            step += 1
            last = step == learner.steps
            if last or step % options.log_every == 0:
                self._write_line(rate)
            if last or (options.evaluate_every and step % options.evaluate_every == 0):
                self._evaluate()
            if last or asked or step % options.checkpoint_every == 0 or step in options.keep_steps:
                self._save()
            if asked and not last:
                return stop.reason or "interrupted"
        return "complete"

    def _settle(self) -> None:
        """Wait for the device, and stop a run whose numbers are none before anything is written of it."""
        if self._learner.settle():
            return
        step, found = self._learner.progress.step, state.checkpoints(self._task.folder)
        good = f"the last good checkpoint is {found[-1]}" if found else "there is no checkpoint before it"
        raise UsageError(
            f"The loss is not a finite number between steps {step - self._learner.counts.steps + 1} and {step}: "
            f"{good}. Begin another run from it with --init, a lower --lr and another --out."
        )

    def _write_line(self, rate: float) -> None:
        """Write what happened since the line before."""
        self._settle()
        learner = self._learner
        line = learner.counts.line()
        self._add({"kind": "step"} | self._place() | {"lr": rate} | line)
        self._report(_told(learner.progress.step, learner.steps, line))
        learner.counts.clear()

    def _place(self) -> dict[str, Any]:
        progress = self._learner.progress
        return {"step": progress.step, "tokens": progress.tokens, "epoch": progress.epoch}

    def _add(self, line: dict[str, Any]) -> None:
        if self._log is not None:
            self._log.add(line)

    def _evaluate(self) -> None:
        self._settle()
        if self._group.first:
            average = self._learner.average
            with average.in_place():
                found = self._evaluator.measure(average.tensors())
            self._evaluation = found
            self._add({"kind": "evaluation"} | self._place() | asdict(found))
            self._report(
                f"step {self._learner.progress.step}: acceptance length {found.tau:.2f} ({found.tau_low:.2f} to "
                f"{found.tau_high:.2f}) on {found.prompts} held-out prompts, held-out loss {found.held_out_loss:.3f}"
            )
            for warning in found.warnings:
                self._report(f"warning: {warning}")
        self._group.wait()
        self._learner.go_on()

    def _save(self) -> None:
        self._settle()
        if self._group.first:
            options = self._task.options
            self._written = state.save(self._task.folder, self._learner.checkpoint())
            state.prune(self._task.folder, keep=options.keep, steps=options.keep_steps)
        self._group.wait()
        self._learner.go_on()


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
