"""What all reports say alike: facts, numbers as text, curves. From verdict and evidence alone."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from outrider.doctor.evidence import Evidence
from outrider.doctor.observation import Observation
from outrider.doctor.verdict import Finding, NotExamined, Verdict

Span = tuple[float, float] | None
MOST_CURVES = 4
SHOWN = 0.01  # probability from which a finding is told; --json has all
SAME = 0.005  # bounds closer than this are one number


@dataclass(frozen=True, slots=True)
class Curve:
    """Position rates u_1, u_2, ... under a name.

    Attributes:
        rounds: how many were measured, where that is known.
    """

    name: str
    rates: tuple[float, ...]
    rounds: float | None = None


def curves(evidence: Evidence, others: Sequence[Curve] = ()) -> list[Curve]:
    """Return the observed curve, those of the series, and others; nothing where no rates were seen."""
    o = Observation(evidence)
    observed = [Curve("observed", o.reading.positions, o.reading.rounds)]
    series = [
        Curve(", ".join(f"{key} {value}" for key, value in one.when.items()), tuple(one.counters.accepted_per_position))
        for one in evidence.series
    ]
    found = [one for one in (*observed, *others, *series) if one.rates and all(0 <= rate <= 1 for rate in one.rates)]
    return found[:MOST_CURVES]


def facts(evidence: Evidence) -> list[tuple[str, str]]:
    """Return what was examined, in pairs of name and value; unknown ones are left out."""
    o = Observation(evidence)
    engine = evidence.engine
    reading = o.reading
    lines: list[tuple[str, str | None]] = [
        ("method", evidence.method),
        ("engine", " ".join(part for part in (engine.name, engine.version, "(fork)" * engine.fork) if part) or None),
        ("target", evidence.target.name),
        ("drafter", evidence.drafter.name),
        ("drafted a round", None if o.facts.drafted is None else str(o.facts.drafted)),
        ("acceptance length", None if reading.tau is None else f"{reading.tau:.2f}{_expected(o)}"),
        ("acceptance rate", None if reading.rate is None else f"{reading.rate:.1%}"),
        ("rounds", None if reading.rounds is None else f"{reading.rounds:,.0f}"),
        ("tokens a second", None if reading.speed is None else f"{reading.speed:.1f}{_plain(reading.baseline)}"),
    ]
    return [(name, value) for name, value in lines if value is not None]


def rate_rows(found: Sequence[Curve]) -> list[list[str]]:
    """Return a row a position: its number, and each curve's rate as far as it goes."""
    longest = max(len(one.rates) for one in found)
    return [
        [str(k + 1), *(f"{one.rates[k]:.3f}" if k < len(one.rates) else "" for one in found)] for k in range(longest)
    ]


def _expected(o: Observation) -> str:
    return "" if o.expected is None else f", expected {o.expected:.2f}"


def _plain(baseline: float | None) -> str:
    return "" if baseline is None else f", {baseline:.1f} without speculation"


def spoken(finding: Finding) -> str:
    """Return a cause in words."""
    return finding.cause.replace("_", " ")


def effect(finding: Finding) -> str:
    """Return what a cause does, in words; empty where that is not known."""
    span = finding.effect.tokens_per_round
    if span is None:
        return ""
    low, high = sorted(span)
    if high <= 0:
        return f"costs {between(-high, -low)} tokens a round"
    return f"{low:+.2f} to {high:+.2f} tokens a round"


def between(low: float, high: float) -> str:
    """Return two bounds, or one number where they are the same."""
    return f"{low:.2f}" if high - low < SAME else f"{low:.2f} to {high:.2f}"


def span(found: Span) -> str:
    """Return an interval; empty where there is none."""
    return "" if found is None else between(*found)


def split(verdict: Verdict) -> tuple[list[Finding], list[Finding]]:
    """Return what is suspected, as far as it is worth a reader's time, and what was ruled out."""
    suspected = [one for one in verdict.findings if one.standing != "refuted" and one.confidence >= SHOWN]
    return suspected, [one for one in verdict.findings if one.standing == "refuted"]


def missing(rows: Sequence[NotExamined]) -> list[tuple[str, str]]:
    """Return what is needed with the codes of the rules that need it."""
    by_need: dict[str, list[str]] = {}
    for row in rows:
        by_need.setdefault(row.needs, []).append(row.code)
    return [(need, ", ".join(codes)) for need, codes in by_need.items()]


def given(evidence: Evidence) -> str:
    """Return the evidence as JSON, without what was not said."""
    said = evidence.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return json.dumps({"schema": 1} | said, indent=1, ensure_ascii=False)


def clean(text: str) -> str:
    """Take out control characters: logs hold terminal codes, and a report must not run them."""
    return "".join(letter for letter in text if letter in "\n\t" or letter.isprintable())
