"""Another draft length as a way forward: one that was measured, or one that follows from the position rates."""

from collections.abc import Iterator

from outrider.adapters.start.deployment import Draft
from outrider.doctor.observation import Observation
from outrider.doctor.options import measured
from outrider.doctor.options.launch import launch
from outrider.doctor.options.lengths import Length, best, enough, lengths
from outrider.doctor.verdict import Way

WASTED = 0.97  # a draft that keeps this share of the tokens a round is long enough
BETTER = 1.03  # times the speed: less is within what runs differ by


def draft_of(o: Observation, tokens: int) -> Draft | None:
    """Return the evidence's own draft with another length; None where its method is not known."""
    method = o.evidence.method
    return None if method is None else Draft(method, o.evidence.drafter.name, tokens)


def draft_lengths(o: Observation) -> Iterator[Way]:
    """Another draft length: measured, or from the position rates; never longer than what was measured."""
    now = o.facts.drafted or len(o.reading.positions)
    speed = o.reading.speed
    for other in measured.others(o):
        faster = speed is not None and (other.reading.speed or 0) > BETTER * speed
        if other.key == "num_speculative_tokens" and isinstance(other.value, int) and faster:
            yield _drafting(
                o,
                other.value,
                measured.point(other.reading.tau),
                measured.point(other.reading.speed),
                "Measured in this evidence.",
            )
            return
    found = lengths(o.reading)
    one = best(found) or enough(found, WASTED)
    if one is not None and one.tokens < now and not o.reading.collapsed:
        yield _drafting(o, one.tokens, (one.low, one.high), one.per_second, _length_risk(o, one))


def _length_risk(o: Observation, one: Length) -> str:
    sample = (
        "" if o.reading.rounds else " How many rounds were measured is not known: the interval is that of rounding."
    )
    block = " A drafter that fills blocks may do otherwise in a shorter one." if o.facts.block_method else ""
    kept = one.per_round / (1 + sum(o.reading.positions))
    return f"Keeps {kept:.0%} of the tokens a round, by the position rates.{sample}{block}"


def _drafting(
    o: Observation,
    tokens: int,
    per_round: tuple[float, float] | None,
    per_second: tuple[float, float] | None,
    risk: str,
) -> Way:
    draft = draft_of(o, tokens)
    return Way(
        name=f"Draft {tokens} token{'s' if tokens > 1 else ''} a round",
        tokens_per_round=per_round,
        tokens_per_second=per_second,
        effort="minutes",
        risk=risk,
        command=None if draft is None else launch(o.evidence, draft),
    )
