"""Does it learn the language or its prompts? Held-out against training, and where anchors were put."""

from collections.abc import Sequence

from outrider.train.report.checks import Check, listed
from outrider.train.report.curve import before, stretch
from outrider.train.report.run import Evaluation, Run, Slots, slot_means

OVERFITTED, GRID = "over-fitted to its prompts", "anchors on a grid, or too few"
FELL = 0.03  # of the best acceptance length; EAGLE-3 lost 0.048 on more epochs of the same (DeepSpec#84)
ROSE = 0.02  # of the least held-out loss
GAP = 0.10  # accuracy of training above that on held-out texts
ONE_PHASE = 2.5  # times its even share of the anchors: drawn anchors fall on all places of a block alike
STARVED = 0.10  # of the documents without an anchor (speculators#1071)
LEAST = 3  # evaluations
SPAN = 3  # evaluations whose mean is compared


def overfitted(run: Run) -> Check:
    """Return whether held-out text became worse while training went on."""
    worse = [text for text in (_tau_fell(run), _loss_rose(run)) if text]
    if worse:
        return Check("over-fitted", OVERFITTED, "found", " ".join([*worse, gap_text(run) or ""]).strip())
    lines = [line for line in run.evaluations if line.tau is not None or line.loss is not None]
    if len(lines) < LEAST:
        text = f"Fewer than {LEAST} evaluations on held-out texts."
        return Check("over-fitted", OVERFITTED, "not examined", text)
    gap = gap_text(run)
    if gap is not None:
        return Check("over-fitted", OVERFITTED, "suspected", f"{gap} Held-out text still gains, or does not lose.")
    return Check("over-fitted", OVERFITTED, "clear", "Held-out text does not become worse.")


def anchors(run: Run) -> Check:
    """Return whether blocks began at all places (F11)."""
    phases = [line.phases for line in run.steps if line.phases]
    starved = [line.starved for line in run.steps if line.starved is not None]
    if not phases and not starved:
        return _anchors_by_curves(run)
    share = sum(starved) / len(starved) if starved else 0.0
    if share > STARVED:
        text = f"{share:.0%} of the documents that are long enough for a block got no anchor."
        return Check("F11", GRID, "found", text)
    one = _largest_phase(slot_means(phases)) if phases else 0.0
    if one > ONE_PHASE:
        text = f"One place in {len(phases[0])} holds {one / len(phases[0]):.0%} of the anchors: a fixed grid."
        return Check("F11", GRID, "found", text)
    return Check("F11", GRID, "clear", "Anchors fall on all places of a block alike, and all documents have some.")


def gap_text(run: Run) -> str | None:
    """Say how far training is above held-out text at the last evaluation; None where it is not far."""
    gap = _gaps(run)
    if not gap or sum(gap) / len(gap) < GAP:
        return None
    return f"Training is right more often than on held-out texts, by slot {listed(gap)}."


def _largest_phase(shares: Slots) -> float:
    """Return the largest share of a phase, as a multiple of the even one."""
    return max(shares) * len(shares) / max(sum(shares), 1e-9)


def _anchors_by_curves(run: Run) -> Check:
    gap = _gaps(run)
    if not gap:
        return Check(
            "F11", GRID, "not examined", "Neither where anchors stood nor accuracy on held-out texts is logged."
        )
    if sum(gap) / len(gap) >= GAP:
        text = f"{gap_text(run)} So it is with blocks that are the same every epoch, and with too few prompts."
        return Check("F11", GRID, "suspected", text)
    return Check("F11", GRID, "clear", f"Training and held-out texts are alike, by slot {listed(gap)}.")


def _gaps(run: Run) -> Slots:
    """Accuracy in training minus on held-out texts, slot by slot or of all, of the same network."""
    line = next((line for line in reversed(run.evaluations) if line.slots or line.accuracy is not None), None)
    if line is None:
        return ()
    trained = stretch(before(run, run.seen(line)))
    if trained.slots and line.slots:
        return tuple(a - b for a, b in zip(trained.slots, line.slots, strict=False))
    if trained.accuracy is None or line.accuracy is None:
        return ()
    return (trained.accuracy - line.accuracy,)


def _tau_fell(run: Run) -> str | None:
    """Compare means of three evaluations, where there are enough: the best of many single ones is luck."""
    lines = run.decoded
    span = SPAN if len(lines) >= 2 * SPAN else 1
    if len(lines) < LEAST:
        return None
    means = [_mean_tau(lines[end - span : end]) for end in range(span, len(lines) + 1)]
    best = max(range(len(means)), key=means.__getitem__)
    line = lines[best + span - 1]
    if means[best] - means[-1] < max(FELL * means[best], _noise(line)):
        return None
    to = f"{means[-1]:.2f} at step {lines[-1].step}"
    return f"Acceptance length fell from {means[best]:.2f} at step {line.step} to {to}."


def _mean_tau(lines: Sequence[Evaluation]) -> float:
    return sum(line.tau or 0.0 for line in lines) / len(lines)


def _noise(line: Evaluation) -> float:
    """Half of the interval's arm: the same prompts are decoded each time, so differences scatter less than lengths."""
    return 0.0 if line.low is None or line.high is None else (line.high - line.low) / 4


def _loss_rose(run: Run) -> str | None:
    lines = [line for line in run.evaluations if line.loss is not None]
    if len(lines) < LEAST:
        return None
    least = min(lines, key=lambda line: line.loss or 0.0)
    later = [line.loss for line in lines if line.step > least.step and line.loss is not None]
    if len(later) < LEAST - 1 or min(later[-2:]) < (1 + ROSE) * (least.loss or 0.0):
        return None
    return f"Held-out loss rose from {least.loss:.3f} at step {least.step} to {later[-1]:.3f}."
