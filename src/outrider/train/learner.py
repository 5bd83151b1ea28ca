"""What learns: network, optimizers, mean and data of a run, moved a step at a time. Knows no log and no folder.

    batch, target's features -> blocks -> network -> loss -> gradients     as often as one step gathers
    sums over processes -> optimizers -> mean over steps

Nothing in a step asks the device a question; ``settle`` waits for it.
"""

import time

from outrider.train import state
from outrider.train.counts import Counts, Stopwatch
from outrider.train.distributed import Group
from outrider.train.losses import Costs, Sums
from outrider.train.network import DraftNetwork
from outrider.train.optimizer import Average, Optimizers, learning_rate
from outrider.train.task import Task
from outrider.train.teacher import Precision, Teacher


class Learner:
    """A run's weights and how far they have come.

    Args:
        task: what to do.
        group: the processes that do it.

    Attributes:
        network, average: the weights, and their mean over steps.
        teacher: shows batches to the network.
        counts: of the steps since the last line of the log.
        progress: how far the run has come.
        steps: of the whole run.
    """

    def __init__(self, task: Task, group: Group) -> None:
        options, config, device = task.options, task.config, task.target.device
        self._task, self._group, self._reader = task, group, task.reader(group.world)
        self.steps = task.steps(self._reader)
        precision = Precision.of(options, device, sinks=config.sinks)
        self.network = DraftNetwork(config, task.tables.to(device, precision.dtype)).to(device)
        self.network.take(task.start)
        if device.type == "cuda":
            self.network.compile_layers()
        self._model = group.wrap(self.network)
        costs = Costs.of(options, config.block_size)
        self.teacher = Teacher(
            task.target,
            self.network,
            costs,
            precision,
            rows=options.rows,
            row_length=options.row_length,
            anchors=options.anchors,
        )
        self._optimizers, self.average = Optimizers(self.network, options), Average(self.network, options.ema)
        self.counts, self._watch = Counts(config.max_tokens, config.block_size, device), Stopwatch(device)
        self.progress = state.Progress(run=task.identity(group.world))
        self._since = time.perf_counter()

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return learning_rate(self._task.options, self.progress.step, self.steps)

    def step(self, *, stop: bool = False) -> bool:
        """Take a step.

        Args:
            stop: whether this process is asked to stop.

        Returns:
            Whether any is.
        """
        progress, options, group = self.progress, self._task.options, self._group
        sums, own_responses = self.teacher.nothing(), 0
        for part in range(options.accumulation):
            counted, responses = self._gather(part, last=part == options.accumulation - 1)
            sums, own_responses = sums + counted, own_responses + responses
        group.add_up(sums.values)
        # The mean over processes becomes the sum, and the sum over slots the mean by their weights.
        length = self._optimizers.step(self.rate, group.world / sums.weight)
        asked, all_responses = group.total([stop, own_responses])
        progress.step += 1
        progress.tokens += round(all_responses)
        self.average.update(progress.step)
        self.counts.add_step(sums, length, round(all_responses))
        progress.within += 1
        if progress.within == self._reader.steps(progress.epoch):
            progress.epoch, progress.within = progress.epoch + 1, 0
        return asked > 0

    def _gather(self, part: int, *, last: bool) -> tuple[Sums, int]:
        """Add the gradients of one batch to those that there are; return counts and response tokens."""
        options, group, progress = self._task.options, self._group, self.progress
        start = (group.rank * options.accumulation + part) * options.rows
        batch = self._reader.read(progress.epoch, progress.within, slice(start, start + options.rows))
        self.counts.add_batch(batch.facts)
        batch = batch.to(self._task.target.device)
        with self._watch.running():
            read = self.teacher.read(batch)
        with group.gathering(self._model, last=last):
            loss, sums = self.teacher.teach(batch, read, self._task.lesson, model=self._model)
            loss.backward()  # type: ignore[no-untyped-call]
        return sums, batch.facts.responses

    def settle(self) -> bool:
        """Wait for the device and take the time of the steps so far; say whether all numbers are numbers."""
        finite, now = self.counts.finite, time.perf_counter()
        self.counts.add_time(now - self._since, self._watch.take())
        self._since = now
        return finite

    def go_on(self) -> None:
        """Let the clock run from here, after something that is no step."""
        self._since = time.perf_counter()

    def checkpoint(self) -> state.Checkpoint:
        """Return all that a resumed run needs."""
        self.progress.counted = self.counts.state()
        return state.Checkpoint(self.progress, self.network.weights(), self.average.tensors(), self._optimizers.state())

    def restore(self, found: state.Checkpoint) -> None:
        """Go on from a checkpoint.

        Raises:
            UsageError: it is of another run.
        """
        self._task.check_same(found.progress.run, self._group.world)
        self.progress = found.progress
        self.network.take(found.weights)
        self.average.restore(found.means)
        self._optimizers.restore(found.optimizers)
        self.counts.restore(found.progress.counted)
