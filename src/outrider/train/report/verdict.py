"""One of five words for a run, and the reasons: converged, improving, over-fitted, broken, or undecided.

Broken and over-fitted go first, for a curve of either has no end worth fitting. What was not examined is said, never
taken for good.
"""

from dataclasses import dataclass
from typing import Any, Literal

from outrider.acceptance import Interval
from outrider.train.report.checks import Check
from outrider.train.report.curve import Series, all_series
from outrider.train.report.fit import LEAST as POINTS
from outrider.train.report.fit import Fit, fit, foretold
from outrider.train.report.health import diverged, learns, loss_size
from outrider.train.report.memory import anchors, gap_text, overfitted
from outrider.train.report.run import Run
from outrider.train.report.served import served_checks

Status = Literal["converged", "improving", "over-fitted", "broken", "undecided"]
LITTLE = 0.03  # of the acceptance length: what a doubling adds to a run that has converged. SpecForge#469 got 0.10
LITTLE_LOSS = 0.01  # of a loss, likewise; ModelOpt's Qwen3-8B got 0.09 from its last doubling
LOW = 1.5  # acceptance length; ModelOpt's gate is 1.4 after one epoch of 100,000 samples
KINDS = "More kinds of prompts help, not more steps."
DECODED = "acceptance length"
SHARED = 0.5  # of an interval's arm: evaluations decode the same prompts, so their differences scatter less
ARM = 1.96  # standard deviations


@dataclass(frozen=True, slots=True)
class Heading:
    """Where one curve is heading.

    Attributes:
        of: what it is of.
        curve: fitted.
        last: fitted value at the end of the run.
        little: a doubling that adds less than this has little left to add.
        gain: of a doubling; its interval holds the miss of the same fit at half of the run, too.
        foretold: what that said of the end.
    """

    of: str
    curve: Fit
    last: float
    little: float
    gain: Interval
    foretold: Interval | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the logs say of a run.

    Attributes:
        headline: in one sentence.
        notes: what to keep in mind with it.
        checks: all of them, whatever they found.
        heading: of the curve that decides; None where there is none to fit.
    """

    status: Status
    headline: str
    notes: tuple[str, ...]
    checks: tuple[Check, ...]
    heading: Heading | None


def judge(run: Run) -> Verdict:
    """Return the verdict."""
    faults = (diverged(run), learns(run), loss_size(run), *served_checks(run), anchors(run))
    overfit = overfitted(run)
    heading = _heading(run)
    status, headline = _status(run, faults, overfit, heading)
    return Verdict(status, headline, tuple(_notes(run, status, heading)), (*faults, overfit), heading)


def _status(run: Run, faults: tuple[Check, ...], overfit: Check, heading: Heading | None) -> tuple[Status, str]:
    found = [check for check in faults if check.state == "found"]
    if found:
        names = "; ".join(f"{check.code}, {check.title}" for check in found)
        return "broken", f"Broken: {names}. {found[0].text}"
    if overfit.state == "found":
        return "over-fitted", f"Over-fitted to its prompts. {overfit.text} {KINDS}"
    if heading is not None:
        return _by_curve(run, heading)
    return "undecided", "Undecided: too few measurements to fit a curve to; see the checks."


def _by_curve(run: Run, heading: Heading) -> tuple[Status, str]:
    gain = heading.gain
    expected = _expected(run, heading)
    if gain.high <= heading.little:
        gap = gap_text(run)
        if gap is not None:
            behind = f"{expected}, and held-out text stays behind. {gap}"
            return "over-fitted", f"Over-fitted to its prompts: {behind} {KINDS}"
        return "converged", f"Converged: {expected}."
    if gain.low > 0 and gain.value > heading.little:
        return "improving", f"Still improving: {expected}."
    return "undecided", f"Undecided between converged and still improving: {expected}."


def _expected(run: Run, heading: Heading) -> str:
    """Say what as much again should bring."""
    gain, more = heading.gain, f"another {_amount(heading.curve.seen)} {run.unit}"
    if heading.curve.rising:
        return f"{more} should add {_bounds(gain)} to the {heading.of} of {heading.last:.2f}"
    return f"{more} should take {_bounds(gain, 3)} off the {heading.of} of {heading.last:.3f}"


def _heading(run: Run) -> Heading | None:
    """Fit the first curve that can be: of what was decoded, then of held-out texts, then of training."""
    series = all_series(run)
    lengths = {each.name: each for each in series.get("acceptance length", ())}
    losses = {each.name: each for each in series.get("loss", ())}
    limit = None if run.facts.block_size is None else float(run.facts.block_size)
    for name, of in (("decoded", DECODED), ("on held-out texts", "length on held-out texts")):
        if name in lengths:
            noise = _noise(lengths[name].low, lengths[name].high)
            found = _fitted(of, lengths[name], LITTLE, limit=limit, noise=noise)
            if found is not None:
                return found
    for name, of in (("held out", "held-out loss"), ("training", "training loss")):
        if name in losses:
            found = _fitted(of, losses[name], LITTLE_LOSS, rising=False, limit=0.0)
            if found is not None:
                return found
    return None


def _fitted(of: str, series: Series, share: float, **settings: Any) -> Heading | None:
    curve = fit(series.seen, series.values, **settings)
    if curve is None:
        return None
    last, said = curve.at(curve.seen), foretold(series.seen, series.values, **settings)
    gain, miss = curve.doubling, 0.0 if said is None else abs(said.value - last)
    widened = Interval(gain.value, min(gain.low, gain.value - miss), max(gain.high, gain.value + miss))
    return Heading(of, curve, last, share * abs(last), widened, said)


def _noise(low: tuple[float, ...], high: tuple[float, ...]) -> float:
    """Return the standard deviation of a measurement from the intervals of all."""
    if not low:
        return 0.0
    arms = [(above - below) / 2 for below, above in zip(low, high, strict=True)]
    return SHARED * sum(arms) / len(arms) / ARM


def _notes(run: Run, status: Status, heading: Heading | None) -> list[str]:
    notes = []
    if not run.decoded:
        notes.append("Served acceptance: not examined, there is no line of an engine's acceptance length.")
    if heading is not None and status != "broken":
        notes += _heading_notes(run, status, heading)
    steps = max((line.step for line in run.steps), default=0)
    if run.facts.planned_steps is not None and steps < run.facts.planned_steps:
        notes.append(f"The run stands at step {steps} of {run.facts.planned_steps}.")
    if not run.counts_tokens:
        notes.append("Tokens are not logged; curves are over steps.")
    return notes


def _heading_notes(run: Run, status: Status, heading: Heading) -> list[str]:
    """Say what the deciding curve is, where it ends, and how far to believe that."""
    notes, digits = [], 2 if heading.curve.rising else 3
    if not run.decoded:
        notes.append(f"Judged by the {heading.of} alone, which does not see faults of serving.")
    elif heading.of != DECODED:
        notes.append(f"Judged by the {heading.of}: a curve takes {POINTS} evaluations after the start.")
    notes.append(f"The {heading.of} is heading for {_bounds(heading.curve.end, digits)} by the fitted curve.")
    if (said := heading.foretold) is not None:
        now = f"{heading.last:.{digits}f}"
        notes.append(f"At half of the run the same fit foretold {_bounds(said, digits)}; now {now}.")
    if status == "converged" and heading.of == DECODED and heading.last < LOW:
        notes.append(
            "That is hardly more than no drafts at all. Taps that tell nothing (F5), or data of another template, mode "
            "or model (F6, F7), end so without a trace in the curves."
        )
    rates = [line.learning_rate for line in run.steps if line.learning_rate is not None]
    if rates and rates[-1] <= max(rates) / 10:
        notes.append(
            "The learning rate has come to its end, which bends curves upwards at last; going on means a longer "
            "schedule from the start, or a warm restart."
        )
    return notes


def _bounds(interval: Interval, digits: int = 2) -> str:
    low, high = sorted((interval.low, interval.high))
    return f"{interval.value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _amount(value: float) -> str:
    """Return a number of tokens or steps in short."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}"
