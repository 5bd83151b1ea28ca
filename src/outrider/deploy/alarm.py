"""Says when the position curve has changed its shape: two counts compared, and what moved, in words.

Rounds of one text resemble each other, so that counts vary more than independent ones would: the variance is taken
``SPREAD`` times as large. That is a caution, not a measurement of this server.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from outrider.adapters import Counts

SPREAD = 4.0
SURE = 4.5  # standard errors; a curve has up to 16 positions, and is looked at every few seconds for days
MATERIAL = 0.1  # of the draft tokens accepted a round, else a change is not worth a word
ENOUGH_ROUNDS = 50  # on either side
EVEN = 0.25  # relative: positions that moved alike


@dataclass(frozen=True, slots=True)
class Alarm:
    """A change of the curve.

    Attributes:
        said: what moved, in words.
        before, after: acceptance lengths.
        errors: how many standard errors the position that moved most lies off.
    """

    said: str
    before: float
    after: float
    errors: float


def changed(before: Counts, after: Counts) -> Alarm | None:
    """Return what changed; None where nothing did, or too few rounds were counted."""
    if min(before.rounds or 0, after.rounds or 0) < ENOUGH_ROUNDS:
        return None
    old, new = _curve(before), _curve(after)
    if not old or not new:
        return None
    depth = min(len(old), len(new))
    errors = [_errors(old[k], before.rounds or 1, new[k], after.rounds or 1) for k in range(depth)]
    kept_old, kept_new = sum(old), sum(new)
    if max(errors) < SURE or abs(kept_new - kept_old) < MATERIAL * max(kept_old, kept_new):
        return None
    return Alarm(_said(old, new), 1 + kept_old, 1 + kept_new, max(errors))


def _curve(counts: Counts) -> list[float]:
    """Position rates; where positions are not counted the tokens a round, as one number."""
    rounds = counts.rounds or 1
    if counts.per_position:
        return [hits / rounds for hits in counts.per_position]
    return [] if counts.accepted is None else [counts.accepted / rounds]


def _errors(old: float, old_rounds: float, new: float, new_rounds: float) -> float:
    """Difference of two rates in standard errors; tokens a round above 1 count as their own variance."""
    pooled = (old * old_rounds + new * new_rounds) / (old_rounds + new_rounds)
    variance = pooled * (1 - pooled) if pooled < 1 else pooled
    error = sqrt(max(variance, 1e-6) * SPREAD * (1 / old_rounds + 1 / new_rounds))
    return abs(new - old) / error


def _said(old: Sequence[float], new: Sequence[float]) -> str:
    down = sum(new) < sum(old)
    length = f"acceptance length {1 + sum(old):.2f} to {1 + sum(new):.2f}"
    if down and sum(new) < MATERIAL * sum(old):
        return f"next to nothing is accepted any more ({length})"
    ratios = [b / a for a, b in zip(old, new, strict=False) if a > 0]
    how = "fell" if down else "rose"
    if len(ratios) > 1 and max(ratios) - min(ratios) < EVEN * max(ratios):
        return f"all positions {how} alike ({length})"
    if down and len(ratios) > 1 and ratios[0] > 1 - MATERIAL:
        first = next(k for k, ratio in enumerate(ratios, start=1) if ratio < 1 - MATERIAL)
        return f"the first position holds, from position {first} on it fell ({length})"
    return f"the curve {how} from position 1 on ({length})"
