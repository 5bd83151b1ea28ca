"""Two answers to one prompt: equal, apart at a near-tie, or apart.

Rounding differs between passes of other widths, and moves log-probabilities a little. How much is read off the words
on which answers agree, and off the places where the reference parts from itself; a first difference within that is a
near-tie. Beyond ``MOST`` nothing is: bfloat16 logits between 16 and 32 lie 0.125 apart, and rounding moves a margin by
a few such steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from outrider.doctor.lossless.result import Condition, Place
from outrider.doctor.lossless.server import Answer

LEAST, MOST = 1e-3, 0.5  # nats
SURE = -0.01  # log-probability above which a word is so sure that its drift says nothing
ENOUGH = 20  # words whose drift is an estimate; with fewer MOST / 5 is taken


@dataclass(frozen=True, slots=True)
class Asked:
    """What was expected of a prompt, and what came."""

    prompt: int
    expected: Answer
    found: Answer


def near_tie(asked: Iterable[Asked], control: Sequence[Asked]) -> float:
    """Return the margin up to which a difference is a near-tie, in nats.

    Args:
        asked: every answer, under every condition.
        control: the reference's answers against its own.
    """
    drifts = [drift for one in asked for drift in _drifts(one)]
    drift = 2 * float(np.quantile(drifts, 0.95)) if len(drifts) >= ENOUGH else MOST / 5
    parted = [
        place.margin for one in control if (place := _place("", one, 0.0)) is not None and place.margin is not None
    ]
    return float(np.clip(max([drift, *parted]), LEAST, MOST))


def compare(name: str, asked: Sequence[Asked], near: float) -> tuple[Condition, list[Place]]:
    """Compare all answers of one condition."""
    places = [place for one in asked if (place := _place(name, one, near)) is not None]
    ties = sum(place.tie for place in places)
    drifts = [drift for one in asked for drift in _drifts(one)]
    condition = Condition(
        name=name,
        asked=len(asked),
        equal=len(asked) - len(places),
        near_ties=ties,
        differ=len(places) - ties,
        drift=float(np.median(drifts)) if len(drifts) >= ENOUGH else None,
    )
    return condition, places


def _drifts(one: Asked) -> list[float]:
    rows = zip(one.expected.logprobs, one.found.logprobs, strict=False)
    return [abs(a - b) for a, b in list(rows)[: _agreed(one)] if a < SURE]


def _agreed(one: Asked) -> int:
    return _alike(one.expected.tokens, one.found.tokens)


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _place(name: str, one: Asked, near: float) -> Place | None:
    if one.expected.text == one.found.text:
        return None
    expected, found = one.expected, one.found
    at = _agreed(one)
    if at >= min(len(expected.tokens), len(found.tokens)):  # no words, or one text ends sooner
        at = _alike(expected.text, found.text)
        return Place(
            condition=name,
            prompt=one.prompt,
            position=at,
            expected=expected.text[at : at + 20],
            found=found.text[at : at + 20],
            margin=None,
            tie=False,
        )
    margin = _margin(expected.tops[at], expected.tokens[at], found.tokens[at])
    return Place(
        condition=name,
        prompt=one.prompt,
        position=at,
        expected=expected.tokens[at],
        found=found.tokens[at],
        margin=margin,
        tie=margin is not None and margin <= near,
    )


def _margin(law: dict[str, float], expected: str, found: str) -> float | None:
    """How far apart the two words are; None where one is not among the likeliest."""
    return abs(law[expected] - law[found]) if expected in law and found in law else None
