"""A report as a record: what ``outrider train report --json`` prints."""

from typing import Literal

from pydantic import Field

from outrider.acceptance import Interval
from outrider.provenance import Provenance, provenance
from outrider.results import Record
from outrider.train.report.curve import Series, all_series
from outrider.train.report.run import Evaluation, Run
from outrider.train.report.verdict import Heading, Status, Verdict


class Bounds(Record):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


class Checked(Record):
    """One check and what it found."""

    code: str
    title: str
    state: Literal["found", "suspected", "clear", "not examined"]
    text: str


class Expected(Record):
    """Where the deciding curve is heading: end - scale * (seen / all seen) ** -exponent, for losses with a plus."""

    of: str
    last: float = Field(description="Fitted value at the end of the run.")
    end: Bounds
    doubling: Bounds = Field(description="Gain of as many tokens (steps) again as were seen.")
    foretold: Bounds | None = Field(description="What the same fit to the first half said of the end.")
    exponent: float
    scale: float
    points: int


class Curve(Record):
    """One series; bounds are empty where it has no intervals."""

    of: str
    name: str
    seen: list[float]
    values: list[float]
    low: list[float]
    high: list[float]


class Measured(Record):
    """One evaluation; null is not logged."""

    step: int
    tokens: float | None
    acceptance_length: float | None
    low: float | None
    high: float | None
    position_rates: list[float]
    held_out_accuracy: list[float]
    held_out_loss: float | None
    prompts: int | None


class RunReport(Record):
    """What the logs of a run say."""

    schema_version: Literal[1] = 1
    status: Status
    headline: str
    notes: list[str]
    format: str
    target: str | None
    unit: str = Field(description="Of seen: tokens or steps.")
    seen: float
    steps: int
    checks: list[Checked]
    expected: Expected | None
    curves: list[Curve]
    evaluations: list[Measured]
    sources: list[str]
    understood: list[str]
    provenance: Provenance


def make_report(run: Run, verdict: Verdict) -> RunReport:
    """Put a run and its verdict into a record."""
    lines = [*(line.step for line in run.steps), *(line.step for line in run.evaluations)]
    return RunReport(
        status=verdict.status,
        headline=verdict.headline,
        notes=list(verdict.notes),
        format=run.facts.format,
        target=run.facts.target,
        unit=run.unit,
        seen=run.end,
        steps=max(lines),
        checks=[Checked(code=c.code, title=c.title, state=c.state, text=c.text) for c in verdict.checks],
        expected=None if verdict.heading is None else _expected(verdict.heading),
        curves=[_curve(of, each) for of, series in all_series(run).items() for each in series],
        evaluations=[_measured(line) for line in run.evaluations],
        sources=list(run.sources),
        understood=list(run.understood),
        provenance=provenance(),
    )


def _expected(heading: Heading) -> Expected:
    return Expected(
        of=heading.of,
        last=heading.last,
        end=_bounds(heading.curve.end),
        doubling=_bounds(heading.gain),
        foretold=None if heading.foretold is None else _bounds(heading.foretold),
        exponent=heading.curve.exponent,
        scale=heading.curve.scale,
        points=heading.curve.points,
    )


def _bounds(interval: Interval) -> Bounds:
    return Bounds(value=interval.value, low=interval.low, high=interval.high)


def _curve(of: str, series: Series) -> Curve:
    return Curve(
        of=of,
        name=series.name,
        seen=list(series.seen),
        values=list(series.values),
        low=list(series.low),
        high=list(series.high),
    )


def _measured(line: Evaluation) -> Measured:
    return Measured(
        step=line.step,
        tokens=line.tokens,
        acceptance_length=line.tau,
        low=line.low,
        high=line.high,
        position_rates=list(line.rates),
        held_out_accuracy=list(line.slots),
        held_out_loss=line.loss,
        prompts=line.prompts,
    )
