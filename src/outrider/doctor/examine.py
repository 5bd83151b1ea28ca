"""The verdict: every rule says what it sees, the signals are weighed against each other, and probabilities come out.

"Nothing is wrong" is one of the hypotheses: evidence of a healthy deployment must not end in a suspect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from outrider.doctor.calibration import PROVEN, SURE, doubt, probabilities, total
from outrider.doctor.effects import RULED_OUT, sized, together, tokens
from outrider.doctor.evidence import Evidence
from outrider.doctor.health import soundness
from outrider.doctor.known import known_defects
from outrider.doctor.observation import Observation
from outrider.doctor.priors import log_prior
from outrider.doctor.rule import RULES, Rule
from outrider.doctor.rules.experiments import next_measurements
from outrider.doctor.rules.remedies import remedies
from outrider.doctor.rules.signal import Signal
from outrider.doctor.verdict import Effect, Finding, NotExamined, Standing, Verdict

SHOWN = 0.02
"""Findings below this probability are left out, unless their known size refutes them."""
AT_LEAST = 4
"""So many are shown, however unlikely, where anything at all speaks for them."""
MANY = 8
LIKELY = 0.5


@dataclass(frozen=True)
class Suspect:
    """A rule with what it saw."""

    rule: Rule
    signals: tuple[Signal, ...]
    size: Signal | None
    prior: float

    @cached_property
    def score(self) -> float:
        """Log of prior times likelihood, up to a constant."""
        return self.prior + total((*self.signals, self.size) if self.size else self.signals)

    @property
    def proven(self) -> bool:
        """A file or an error names it."""
        return any(signal.proof for signal in self.signals)

    @property
    def refuted(self) -> bool:
        """Its known size cannot give what is seen."""
        return self.size is not None and self.size.weight <= RULED_OUT and not self.proven


def examine(evidence: Evidence, warnings: Sequence[str] = ()) -> Verdict:
    """Weigh what is known; ``warnings`` are the reader's, and are kept as notes."""
    o = Observation(evidence)
    suspects = suspected(o)
    chances = probabilities({"": soundness(o), **{s.rule.code: s.score for s in suspects}})
    ranked = sorted(suspects, key=lambda s: (s.refuted, -chances[s.rule.code]))
    findings = [
        _finding(s, o, chances[s.rule.code]) for i, s in enumerate(ranked) if _shown(s, chances[s.rule.code], i)
    ]
    left = [f for f in findings if f.standing != "refuted"][:MANY]
    refuted = [f for f in findings if f.standing == "refuted"]
    return Verdict(
        findings=[*left, *refuted],
        not_examined=[NotExamined(code=r.code, needs=needs) for r in RULES if (needs := r.lacks(o))],
        next=next_measurements(o, {s.rule.cause: doubt(chances[s.rule.code]) for s in suspects if not s.refuted}),
        summary=_summary(left, refuted, chances[""], o),
        notes=list(warnings),
    )  # fmt: skip


def suspected(o: Observation) -> list[Suspect]:
    """Every rule with its signals, those of known defects included."""
    defects = known_defects(o)
    return [
        Suspect(r, (*r.signals(o), *defects.get(r.cause, ())), sized(r.cause, o), log_prior(r.cause, o)) for r in RULES
    ]


def _shown(suspect: Suspect, chance: float, place: int) -> bool:
    spoken = any(signal.weight > 0 for signal in suspect.signals)
    return chance >= SHOWN or (spoken and (suspect.refuted or place < AT_LEAST))


def _finding(suspect: Suspect, o: Observation, chance: float) -> Finding:
    signals = sorted(suspect.signals, key=lambda s: -abs(s.weight))
    against = [s.text for s in signals if s.weight < 0]
    effect = tokens(suspect.rule.cause, o)
    return Finding(
        code=suspect.rule.code, cause=suspect.rule.cause, standing=_standing(suspect, chance),
        confidence=round(min(chance, PROVEN if suspect.proven else SURE), 3),
        effect=Effect(tokens_per_round=effect),
        evidence=[s.text for s in signals if s.weight > 0],
        against=[suspect.size.text, *against] if suspect.size else against,
        remedy=remedies(suspect.rule.cause, o.evidence.engine.name),
    )  # fmt: skip


def _standing(suspect: Suspect, chance: float) -> Standing:
    if suspect.refuted:
        return "refuted"
    if suspect.proven and chance >= LIKELY:
        return "confirmed"
    return "likely" if chance >= LIKELY else "possible"


def _summary(left: list[Finding], refuted: list[Finding], sound: float, o: Observation) -> str:
    if not left or sound > left[0].confidence:
        text = "Nothing in this evidence speaks of a fault"
    else:
        first = left[0]
        text = f"{_spoken(first.cause)} is {first.standing} ({first.confidence:.0%})"
        if len(left) > 1 and first.standing != "confirmed":
            text += f", then {_spoken(left[1].cause)} ({left[1].confidence:.0%})"
    if refuted:
        text += f"; of the wrong size to explain it: {', '.join(_spoken(f.cause) for f in refuted)}"
    least = together((f.cause for f in refuted), o)
    if least is not None and o.share is not None and least > o.share:
        text += f" (even together they leave {least:.0%} of the length, {o.share:.0%} is seen)"
    return text[0].upper() + text[1:] + "."


def _spoken(cause: str) -> str:
    return cause.replace("_", " ")
