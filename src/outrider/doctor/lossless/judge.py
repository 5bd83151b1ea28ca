"""What follows from conditions, first differences and laws: one outcome, in one sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outrider.doctor.lossless.compare import MOST
from outrider.doctor.lossless.result import Condition, Law, Outcome, Place

CONTROL = "the reference with itself"
CHANCE = 1e-3  # of all laws together: below, they are not kept


@dataclass(frozen=True, slots=True)
class Seen:
    """All that was found.

    Attributes:
        alone: there was no reference.
        worded: the server sends log-probabilities.
        short: prompts were shortened to what the server takes.
    """

    conditions: Sequence[Condition]
    places: Sequence[Place]
    laws: Sequence[Law]
    alone: bool
    worded: bool
    short: bool


def judge(seen: Seen) -> tuple[Outcome, str]:
    """Return the outcome and why, what weighs most first."""
    return next(_grounds(seen))


def notes(seen: Seen) -> list[str]:
    """Say what the check could not see."""
    silent = "The server sends no log-probabilities: near-ties cannot be told from corruption, and no law was tested."
    few = "Too few words were drawn to test a law."
    alone = "Without --reference, text that is always wrong in the same way is not seen."
    short = "The server takes short prompts only: what a prefix cache loses of long ones is not seen."
    cut = (
        "First words, which no draft decides, are off the stated law: the server draws from another; laws do not count."
    )
    lines = (
        (not seen.worded, silent),
        (_cut(seen), cut),
        (seen.worded and not seen.laws, few),
        (seen.alone, alone),
        (seen.short, short),
    )
    return [line for applies, line in lines if applies]


def _grounds(seen: Seen) -> Iterator[tuple[Outcome, str]]:
    if any(one.differ for one in seen.conditions if one.name == CONTROL):
        yield "not_decidable", "The reference's own text changes from one time to the next; nothing follows from it."
    broken = [place for place in seen.places if not place.tie]
    if broken and not seen.worded:
        yield "not_decidable", f"Texts differ, and without log-probabilities nobody can say why: {where(broken[0])}."
    if broken:
        yield "differs", f"The text is not always the target's own: {where(broken[0])}."
    for one in seen.conditions:
        if one.drift is not None and one.drift > MOST:
            yield "differs", f"Words agree, but their log-probabilities drift by {one.drift:.2g} nats: {one.name}."
    for law in _off(seen):
        if not _cut(seen):
            after = f"word {law.position} after {law.prompt!r}"
            yield "differs", f"Drawn words do not follow the law that the server itself states: {after}."
    if seen.alone:
        yield "not_decidable", "The server agrees with itself in every condition; only a --reference says the rest."
    if seen.places:
        yield "near_ties_only", f"Texts part at near-ties only ({len(seen.places)} times), as rounding makes them."
    yield "lossless", "Every text is the reference's own."


def _off(seen: Seen) -> list[Law]:
    return [law for law in seen.laws if law.chance * len(seen.laws) < CHANCE]


def _cut(seen: Seen) -> bool:
    """Whether first words, which no draft decides, are off the stated law: then the server draws from another one."""
    return any(law.position == 1 for law in _off(seen))


def where(place: Place) -> str:
    """Say where a text left what was expected of it."""
    margin = "" if place.margin is None else f", {place.margin:.2g} nats apart"
    return (
        f"{place.condition}, prompt {place.prompt}, position {place.position}, {place.expected!r} was expected, "
        f"found {place.found!r}{margin}"
    )
