"""A pair that drafts here as it was observed: the engine does what the files say. Are the files right?"""

from collections.abc import Sequence

from outrider.doctor.ablation.gains import HARDLY, Gain, gains
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.doctor.rule import RULES
from outrider.doctor.rules.remedies import remedies
from outrider.doctor.verdict import Cause, Effect, Finding, Standing, Verdict

SURE = 0.97  # a reading that surely drafts better is no accident
UNTRAINED = 0.85  # no reading drafts: weights that were never trained, or were damaged on the way
CONFIRMED = 0.9


def blamed(verdict: Verdict, table: AblationTable, more: Sequence[Entry] | None, *, as_observed: float) -> Verdict:
    """Return the verdict with the files' own fault, if they have one.

    Args:
        verdict: so far.
        table: of the pair as its files are.
        more: other readings that were searched; None where they were not.
        as_observed: probability that the pair here is the one that was observed.
    """
    better = gains(table, more or ())
    if better:
        return _put_first(verdict, _misread(better, table, as_observed), _told(better[0], table))
    if more is not None and table.healthy.length < HARDLY:
        told = (
            f"In no reading of its files does the drafter draft ({table.healthy.length:.2f} tokens a round as it is)."
        )
        return _put_first(verdict, _untrained(table, as_observed), told)
    return verdict


def code_of(cause: Cause) -> str:
    """Return the rule of a cause."""
    return next(rule.code for rule in RULES if rule.cause == cause)


def _misread(better: Sequence[Gain], table: AblationTable, chance: float) -> Finding:
    gain = better[0]
    against = [
        f"{other.label} gains too: {other.effect.value:+.2f} tokens a round ({other.cause})" for other in better[1:3]
    ]
    return Finding(
        code=code_of(gain.cause),
        cause=gain.cause,
        standing=_standing(chance * SURE),
        confidence=round(chance * SURE, 3),
        effect=Effect(tokens_per_round=(-gain.effect.high, -gain.effect.low)),
        evidence=[_told(gain, table)],
        against=against,
        remedy=remedies(gain.cause, None),
    )


def _untrained(table: AblationTable, chance: float) -> Finding:
    return Finding(
        code=code_of("undertrained_drafter"),
        cause="undertrained_drafter",
        standing="likely" if chance * UNTRAINED >= 0.5 else "possible",  # noqa: PLR2004 -- likelier than not
        confidence=round(chance * UNTRAINED, 3),
        evidence=[f"run here, the pair keeps {table.healthy.length:.2f} tokens a round, and no other reading drafts"],
        against=["weights that were damaged when they were written or converted look the same"],
        remedy=remedies("undertrained_drafter", None),
    )


def _standing(confidence: float) -> Standing:
    return "confirmed" if confidence >= CONFIRMED else "likely" if confidence >= 0.5 else "possible"  # noqa: PLR2004


def _told(gain: Gain, table: AblationTable) -> str:
    return (
        f"Read with {gain.label}, the same files keep {gain.length:.2f} tokens a round here, and as they stand "
        f"{table.healthy.length:.2f} (gain {gain.effect.low:+.2f} to {gain.effect.high:+.2f})."
    )


def _put_first(verdict: Verdict, finding: Finding, summary: str) -> Verdict:
    """Put a finding beside the others, which share what it leaves; it takes over what was known of its cause."""
    before = next((one for one in verdict.findings if one.cause == finding.cause), None)
    if before is not None:
        finding = finding.model_copy(
            update={"evidence": [*finding.evidence, *before.evidence], "remedy": before.remedy}
        )
    left = 1 - finding.confidence
    others = [
        one.model_copy(update={"confidence": round(one.confidence * left, 3), "standing": _weaker(one, left)})
        for one in verdict.findings
        if one.cause != finding.cause
    ]
    ranked = sorted([finding, *others], key=lambda one: (one.standing == "refuted", -one.confidence))
    first = ranked[0] is finding
    return verdict.model_copy(update={"findings": ranked, "summary": summary if first else verdict.summary})


def _weaker(one: Finding, left: float) -> Standing:
    if one.standing == "refuted":
        return "refuted"
    return "likely" if one.confidence * left >= 0.5 else "possible"  # noqa: PLR2004 -- likelier than not
