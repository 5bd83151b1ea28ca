"""An ablation brought into a verdict: what explains the observed curve is named, what was tried and does not is not.

Causes that were tried share what is not left to the unexplained and the invisible; those that were not tried keep
their order and share that rest. Where the pair drafts here as it was observed, its files are to blame or nothing is:
a reading of them that drafts better is the finding (``ablation_files``).
"""

from collections.abc import Iterator, Sequence

from outrider.doctor.ablation.explain import INVISIBLE, UNEXPLAINED, Explained, Explanation, explain
from outrider.doctor.ablation.part import Observed
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.doctor.ablation_files import blamed, code_of
from outrider.doctor.evidence import Evidence
from outrider.doctor.observation import Observation
from outrider.doctor.verdict import Cause, Effect, Finding, Standing, Verdict

SHOWN = 0.02  # probability from which a cause is named
CONFIRMED, LIKELY = 0.9, 0.5
CURVES = 1  # of faults, beside the observed one


def merged(
    evidence: Evidence, verdict: Verdict, table: AblationTable, more: Sequence[Entry] | None = None
) -> tuple[Verdict, list[Entry]]:
    """Return the verdict with what the ablation says, and the entries that explain the observed curve best.

    Args:
        evidence: what is known; without an observed curve only the pair's own files are judged.
        verdict: by files and counters.
        table: of the pair as its files are.
        more: other readings of the files that were searched; None where they were not.
    """
    reading = Observation(evidence).reading
    if not reading.rounds or not reading.positions or reading.conflicts:
        need = "counters with rounds and acceptance per position, to compare with the table of faults"
        found = verdict.model_copy(update={"next": [need, *verdict.next]})
        return blamed(found, table, more, as_observed=1.0), []
    explanation = explain(Observed(reading.rounds, reading.positions), table)
    best = [entry for entry in table.entries if entry.fault.label in explanation.ranking[0].faults][:CURVES]
    chance = {one.cause: one.probability for one in explanation.ranking}
    found = _ranked(verdict, explanation, table)
    return blamed(found, table, more, as_observed=chance.get(INVISIBLE, 0.0)), best


def _ranked(verdict: Verdict, found: Explanation, table: AblationTable) -> Verdict:
    tried = {entry.fault.cause for entry in table.entries}
    named = list(_named(found, table, verdict))
    rest = sum(one.probability for one in found.ranking if one.cause in (INVISIBLE, UNEXPLAINED))
    kept = [
        one.model_copy(update={"confidence": round(one.confidence * rest, 3), "standing": _standing(one, rest)})
        for one in verdict.findings
        if one.cause not in tried
    ]
    ranked = sorted([*named, *kept], key=lambda one: (one.standing == "refuted", -one.confidence))
    return verdict.model_copy(update={"findings": ranked, "summary": _summary(found.ranking[0])})


def _standing(one: Finding, rest: float) -> Standing:
    if one.standing == "refuted":
        return "refuted"
    return "likely" if one.confidence * rest >= LIKELY else "possible"


def _named(found: Explanation, table: AblationTable, verdict: Verdict) -> Iterator[Finding]:
    """Yield a finding for each cause that was tried: with its probability, or ruled out with its size."""
    for cause in dict.fromkeys(entry.fault.cause for entry in table.entries):
        explaining = [one for one in found.ranking if cause in one.cause.split(" + ")]
        chance = sum(one.probability for one in explaining)
        before = next((one for one in verdict.findings if one.cause == cause), None)
        if chance >= SHOWN:
            yield _finding(cause, chance, explaining[0], before)
        elif before is not None:
            yield _refuted(cause, table, before)


def _finding(cause: Cause, chance: float, best: Explained, before: Finding | None) -> Finding:
    alone = best.cause == cause
    effect = (best.effect.low, best.effect.high) if best.effect is not None and alone else None
    told = f"put into this pair, {' and '.join(best.faults)} gives the observed curve (probability {chance:.0%})"
    alike = [other for other in best.alike if other not in best.cause.split(" + ")]
    unsure = [f"a measurement of this size cannot tell it from {', '.join(alike)}"] if alike else []
    moved = effect is not None and not effect[0] <= 0 <= effect[1]
    standing: Standing = "confirmed" if chance >= CONFIRMED and moved and not alike else "possible"
    if standing == "possible" and chance >= LIKELY:
        standing = "likely"
    return Finding(
        code=code_of(cause),
        cause=cause,
        standing=standing,
        confidence=round(min(chance, 0.99), 3),
        effect=Effect(tokens_per_round=effect),
        evidence=[told, *(before.evidence if before else ())],
        against=[*unsure, *(before.against if before else ())],
        remedy=before.remedy if before else [],
    )


def _refuted(cause: Cause, table: AblationTable, before: Finding) -> Finding:
    effects = [table.effect(entry).value for entry in table.entries if entry.fault.cause == cause]
    size = f"put into this pair it moves {min(effects):+.2f} to {max(effects):+.2f} tokens a round"
    against = [f"{size}, which does not give the observed curve", *before.against]
    return before.model_copy(update={"standing": "refuted", "confidence": 0.0, "against": against})


def _summary(best: Explained) -> str:
    if best.cause == UNEXPLAINED:
        return f"No fault that was put into this pair gives the observed curve ({best.probability:.0%})."
    if best.cause == INVISIBLE:
        return f"The pair drafts here as it was observed ({best.probability:.0%}): no fault that was put in is needed."
    told = " and ".join(best.faults)
    return f"Put into this pair, {told} explains the observed curve ({best.probability:.0%})."
