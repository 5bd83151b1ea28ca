"""Does the loss behave: finite, falling, of the size that training of this kind has?

Sizes are those of cross-entropy over a whole vocabulary; of other losses only the shape is judged.
"""

import math

from outrider.train.report.checks import Check
from outrider.train.report.curve import recent, stretch
from outrider.train.report.run import Run, Step

LEAST = 6  # lines of training that are enough to judge
ROSE = 1.3  # times the least loss: beyond what batches scatter
FELL = 0.03  # of the first loss: less is no learning
PATIENCE = 300  # steps until something must be learnt
EARLY = 1000  # steps
LARGE = 20_000  # words of a vocabulary for which the sizes below hold
LATE_LOSS = 6.0  # ModelOpt Qwen3-8B has 5.85 after 1,000 steps
TINY = 0.12  # of ln V, in the first epoch; ModelOpt's smallest pair, on 1,000 samples, is at 0.15 after 500 steps
GOOD = 0.7  # accuracy of all slots in the first epoch that SpecForge#473's faulty training passed
SIZE = "a loss too small, or too large, for a fresh drafter"
START = 20  # steps in which a fresh drafter's loss is near ln V


def diverged(run: Run) -> Check:
    """Return whether the loss left the numbers, or rose and stayed up."""
    title = "the loss leaves the numbers, or rises"
    for line in run.steps:
        if any(value is not None and not math.isfinite(value) for value in (line.loss, line.grad_norm)):
            return Check("diverged", title, "found", f"Loss or gradient is not a number at step {line.step}.")
    losses = [line.loss for line in run.steps if line.loss is not None]
    if len(losses) < LEAST:
        return Check("diverged", title, "not examined", "Fewer than 6 lines of training tell a loss.")
    span = max(1, len(losses) // 20)
    means = [sum(losses[i : i + span]) / span for i in range(0, len(losses) - span + 1, span)]
    least, last = min(means), min(means[-2:])
    at = run.steps[min(means.index(least) * span, len(run.steps) - 1)].step
    if last > ROSE * least + 0.05:
        return Check("diverged", title, "found", f"The loss rose from {least:.2f} at step {at} to {last:.2f}.")
    return Check("diverged", title, "clear", f"The loss is {last:.2f} at the end, at least {least:.2f}.")


def learns(run: Run) -> Check:
    """Return whether the loss falls at all."""
    title = "nothing is learnt"
    losses = [line for line in run.steps if line.loss is not None and math.isfinite(line.loss)]
    if len(losses) < LEAST or losses[-1].step < PATIENCE:
        return Check("flat", title, "not examined", f"Fewer than {PATIENCE} steps tell a loss.")
    first, last = stretch(losses[:3]).loss or 0.0, stretch(recent(run)).loss or 0.0
    text = f"The loss went from {first:.2f} to {last:.2f} in {losses[-1].step} steps."
    if first - last < FELL * first:
        return Check(
            "flat",
            title,
            "found",
            f"{text} Nothing is learnt: a learning rate of 0, taps that give zeros (F5), or labels of another text.",
        )
    return Check("flat", title, "clear", text)


def loss_size(run: Run) -> Check:
    """Return whether the loss is of the size that a fresh drafter has, early on."""
    early = [line for line in run.steps if line.loss is not None and _is_early(run, line)]
    if not early:
        return Check("scale", SIZE, "not examined", "No line of the first epoch or the first 1,000 steps tells a loss.")
    words = run.facts.vocab_size
    if run.facts.loss not in (None, "decay"):
        return Check("scale", SIZE, "not examined", f"The loss is {run.facts.loss}, whose size is not known.")
    last = stretch(early[-3:])
    leak = _leak(last.loss or 0.0, last.accuracy, words)
    if leak is not None:
        return leak
    slow = last.loss is not None and last.loss >= LATE_LOSS and early[-1].step >= 0.9 * EARLY
    if slow and (words or 0) >= LARGE:
        text = f"The loss is {last.loss:.2f} after {early[-1].step} steps; others are below {LATE_LOSS:g} by {EARLY}."
        return Check("scale", SIZE, "suspected", f"{text} The learning rate is too low, or the taps tell little.")
    text = f"The loss is {last.loss or 0:.2f} after {early[-1].step} steps."
    return Check("scale", SIZE, "clear", text + _start(run, words))


def _is_early(run: Run, line: Step) -> bool:
    """The first 1,000 steps, and no later than the first epoch where that is known."""
    if line.epoch is not None and line.epoch >= 1:
        return False
    if run.facts.epoch_tokens is not None and line.tokens is not None and line.tokens > run.facts.epoch_tokens:
        return False
    return line.step <= EARLY


def _leak(loss: float, accuracy: float | None, words: int | None) -> Check | None:
    bound = TINY * math.log(words or LARGE)
    if loss >= bound or accuracy is None or accuracy < GOOD:
        return None
    text = (
        f"Within the first epoch the loss is {loss:.2f} and {accuracy:.0%} of the words are right, as it does not come "
        "on unseen text: slots see what they are asked for. F1, labels shifted by a place, or F2, a context that "
        "reaches to the anchor; without served acceptance the logs do not tell which."
    )
    known = words is not None and words >= LARGE
    return Check("F1/F2", SIZE, "found" if known else "suspected", text)


def _start(run: Run, words: int | None) -> str:
    first = next((line for line in run.steps if line.loss is not None), None)
    if words is None or first is None or first.loss is None or first.step > START:
        return ""
    if first.loss < math.log(words) / 2:
        return f" It began at {first.loss:.2f}, below half of ln V = {math.log(words):.1f}: from trained weights."
    return f" It began at {first.loss:.2f}; ln V is {math.log(words):.1f}."
