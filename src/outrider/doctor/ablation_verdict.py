"""An ablation brought into a verdict: what explains the observed curve is named, what was tried and does not is not.

Causes that were tried share what is not left to the unexplained and the invisible; those that were not tried keep
their order and share that rest. Where the pair drafts here as it was observed, its files are to blame or nothing is:
a reading of them that drafts better is the finding (``ablation_files``).
"""

from collections.abc import Iterator, Sequence

from outrider.doctor.ablation.explain import INVISIBLE, UNEXPLAINED, Explained, Explanation, explain_kinds
from outrider.doctor.ablation.part import Observed
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.doctor.ablation_files import blamed, code_of
from outrider.doctor.evidence import Evidence
from outrider.doctor.observation import Observation
from outrider.doctor.observation.reading import Reading, read
from outrider.doctor.verdict import Cause, Effect, Finding, Standing, Verdict

SHOWN = 0.02  # probability from which a cause is named
CONFIRMED, LIKELY = 0.9, 0.5
CURVES = 1  # of faults, beside the observed one


def merged(
    evidence: Evidence,
    verdict: Verdict,
    table: AblationTable,
    more: Sequence[Entry] | None = None,
    *,
    kinds: Sequence[str] = (),
    shared: float = 0.0,
) -> tuple[Verdict, list[Entry]]:
    """Return the verdict with what the ablation says, and the entries that explain the observed curve best.

    Args:
        evidence: what is known; without an observed curve only the pair's own files are judged.
        verdict: by files and counters.
        table: of the pair as its files are.
        more: other readings of the files that were searched; None where they were not.
        kinds: of each text of the table; a measurement of ``series`` with such a ``workload`` is compared with those.
        shared: share of the observed rounds that are on the table's own texts.
    """
    observation = Observation(evidence)
    parts = _by_kind(observation, table, kinds) or _pooled(observation, table)
    if not parts:
        need = "counters with rounds and acceptance per position, to compare with the table of faults"
        found = verdict.model_copy(update={"next": [need, *verdict.next]})
        return blamed(found, table, more, as_observed=1.0), []
    explanation = explain_kinds(parts, table, shared=shared)
    best = [entry for entry in table.entries if entry.fault.label in explanation.ranking[0].faults][:CURVES]
    chance = {one.cause: one.probability for one in explanation.ranking}
    found = _ranked(verdict, explanation, table)
    return blamed(found, table, more, as_observed=chance.get(INVISIBLE, 0.0)), best


Parts = list[tuple[Observed, AblationTable]]


def _pooled(observation: Observation, table: AblationTable) -> Parts:
    """The main measurement, where it has a curve."""
    seen = _observed(observation.reading)
    return [] if seen is None else [(seen, table)]


def _by_kind(observation: Observation, table: AblationTable, kinds: Sequence[str]) -> Parts:
    """Measurements that differ in nothing but their kind of texts, where the table has such."""
    found: Parts = []
    for measurement in observation.evidence.series:
        kind = str(measurement.when.get("workload", ""))
        texts = [place for place, name in enumerate(kinds) if name == kind]
        seen = _observed(read(measurement.counters, observation.facts.drafted))
        if kind and texts and seen is not None and len(measurement.when) == 1:
            found.append((seen, table.of_texts(texts)))
    return found


def _observed(reading: Reading) -> Observed | None:
    if not reading.rounds or not reading.positions or reading.conflicts:
        return None
    return Observed(reading.rounds, reading.positions)


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
        elif before is not None and found.ranking[0].cause == UNEXPLAINED:
            yield _unmatched(cause, found.ranking[0].probability, table, before)
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
    against = [f"{_moves(cause, table)}, which does not give the observed curve", *before.against]
    return before.model_copy(update={"standing": "refuted", "confidence": 0.0, "against": against})


def _unmatched(cause: Cause, rest: float, table: AblationTable, before: Finding) -> Finding:
    """Nothing that was put in gives the curve: a cause can still be it, at a strength that was not tried."""
    told = f"{_moves(cause, table)} at the strengths tried; none of them gives the observed curve"
    kept = {"confidence": round(before.confidence * rest, 3), "standing": _standing(before, rest)}
    return before.model_copy(update={**kept, "against": [told, *before.against]})


def _moves(cause: Cause, table: AblationTable) -> str:
    effects = [table.effect(entry).value for entry in table.entries if entry.fault.cause == cause]
    return f"put into this pair it moves {min(effects):+.2f} to {max(effects):+.2f} tokens a round"


def _summary(best: Explained) -> str:
    if best.cause == UNEXPLAINED:
        return f"No fault that was put into this pair gives the observed curve ({best.probability:.0%})."
    if best.cause == INVISIBLE:
        return f"The pair drafts here as it was observed ({best.probability:.0%}): no fault that was put in is needed."
    told = " and ".join(best.faults)
    return f"Put into this pair, {told} explains the observed curve ({best.probability:.0%})."
