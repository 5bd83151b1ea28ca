"""One of five words for a run, and the reasons: converged, improving, over-fitted, broken, or undecided.

Broken and over-fitted go first, for a curve of either has no end worth fitting. What was not examined is said, never
taken for good.
"""

from dataclasses import dataclass
from typing import Any, Literal

from outrider.acceptance import Interval
from outrider.train.report.checks import Check
from outrider.train.report.curve import Series, all_series
from outrider.train.report.fit import Fit, fit, foretold
from outrider.train.report.health import diverged, learns, loss_size
from outrider.train.report.memory import anchors, gap_text, overfitted
from outrider.train.report.run import Run
from outrider.train.report.served import served_checks

Status = Literal["converged", "improving", "over-fitted", "broken", "undecided"]
LITTLE = 0.03  # of the acceptance length: what a doubling adds to a run that has converged. SpecForge#469 got 0.10
LITTLE_LOSS = 0.01  # of a loss, likewise; ModelOpt's Qwen3-8B got 0.09 from its last doubling
KINDS = "More kinds of prompts help, not more steps."
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
        headings: fitted curves, the one that decides first.
    """

    status: Status
    headline: str
    notes: tuple[str, ...]
    checks: tuple[Check, ...]
    headings: tuple[Heading, ...]


def judge(run: Run) -> Verdict:
    """Return the verdict."""
    faults = (diverged(run), learns(run), loss_size(run), *served_checks(run), anchors(run))
    overfit = overfitted(run)
    headings = tuple(_headings(run))
    status, headline = _status(run, faults, overfit, headings)
    return Verdict(status, headline, tuple(_notes(run, headings)), (*faults, overfit), headings)


def _status(run: Run, faults: tuple[Check, ...], overfit: Check, headings: tuple[Heading, ...]) -> tuple[Status, str]:
    found = [check for check in faults if check.state == "found"]
    if found:
        names = "; ".join(f"{check.code}, {check.title}" for check in found)
        return "broken", f"Broken: {names}. {found[0].text}"
    if overfit.state == "found":
        return "over-fitted", f"Over-fitted to its prompts. {overfit.text} {KINDS}"
    if headings:
        return _by_curve(run, headings[0])
    return "undecided", "Undecided: too few measurements to fit a curve to; see the checks."


def _by_curve(run: Run, heading: Heading) -> tuple[Status, str]:
    gain = heading.gain
    expected = f"another {_amount(heading.curve.seen)} {run.unit} should add {_gain_text(heading)}"
    if gain.high <= heading.little:
        gap = gap_text(run)
        if gap is not None:
            return (
                "over-fitted",
                f"Over-fitted to its prompts: {expected}, and held-out text stays behind. {gap} {KINDS}",
            )
        return "converged", f"Converged: {expected}."
    if gain.low > 0 and gain.value > heading.little:
        return "improving", f"Still improving: {expected}."
    return "undecided", f"Undecided between converged and still improving: {expected}."


def _gain_text(heading: Heading) -> str:
    gain = heading.gain
    digits = 2 if heading.curve.rising else 3
    sign = "" if heading.curve.rising else "-"
    low, high = sorted((gain.low, gain.high))
    span = f"{gain.value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
    start = f"{heading.last:.{digits}f}"
    return f"{sign}{span} to the {heading.of} of {start}"


def _headings(run: Run) -> list[Heading]:
    """Fit what can be fitted, in the order in which it decides: decoded, then held out, then training."""
    series = all_series(run)
    lengths = {each.name: each for each in series.get("acceptance length", ())}
    losses = {each.name: each for each in series.get("loss", ())}
    limit = None if run.facts.block_size is None else float(run.facts.block_size)
    found = []
    for name, of in (("decoded", "acceptance length"), ("on held-out texts", "length on held-out texts")):
        if name in lengths:
            noise = _noise(lengths[name].low, lengths[name].high)
            found.append(_heading(of, lengths[name], LITTLE, limit=limit, noise=noise))
    for name in ("held out", "training"):
        if name in losses:
            of = f"{name.replace(' ', '-')} loss"
            found.append(_heading(of, losses[name], LITTLE_LOSS, rising=False, limit=0.0))
    return [heading for heading in found if heading is not None]


def _heading(of: str, series: Series, share: float, **settings: Any) -> Heading | None:
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


def _notes(run: Run, headings: tuple[Heading, ...]) -> list[str]:
    notes = []
    if not run.decoded:
        notes.append("Served acceptance: not examined, there is no line of an engine's acceptance length.")
        if headings:
            notes.append(f"Judged by the {headings[0].of} alone, which does not see faults of serving.")
    if headings:
        end = headings[0].curve.end
        notes.append(f"The {headings[0].of} is heading for {_bounds(end)} by the fitted curve.")
        if (said := headings[0].foretold) is not None:
            notes.append(f"At half of the run the same fit foretold {_bounds(said)}; now {headings[0].last:.2f}.")
    rates = [line.learning_rate for line in run.steps if line.learning_rate is not None]
    if rates and rates[-1] <= max(rates) / 10:
        notes.append(
            "The learning rate has come to its end, which bends curves upwards at last; going on means a longer "
            "schedule from the start, or a warm restart."
        )
    if not run.counts_tokens:
        notes.append("Tokens are not logged; curves are over steps.")
    return notes


def _bounds(interval: Interval) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _amount(value: float) -> str:
    """Return a number of tokens or steps in short."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}"
