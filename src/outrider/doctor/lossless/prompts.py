"""Prompts of the check: pairs that share a long beginning, so that a prefix cache has something to restore."""

from dataclasses import dataclass

PAIRS = 4
# Of a beginning, about 19 tokens each: more than the pages in which hybrid models' states are cached; and for a server
# whose slots hold less.
RECORDS = (90, 20)
THINGS = ("lamp", "ladder", "kettle", "violin", "compass", "barrel", "mirror", "anvil", "lantern", "globe", "saddle")
COLOURS = ("red", "blue", "green", "white", "black", "yellow", "grey")
PLACES = ("cellar", "attic", "hall", "kitchen", "garden", "library", "workshop", "stable", "harbour")
SHORT = ("The capital of France is", "Once upon a time there was a", "My favourite colour is")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two prompts that begin alike."""

    first: str
    second: str


def pairs(mark: str, records: int) -> list[Pair]:
    """Return the pairs; ``mark`` stands at the start, so that no cache has met them before."""
    return [_pair(f"Inventory {mark}-{number}.", number, records) for number in range(PAIRS)]


def _pair(head: str, number: int, records: int) -> Pair:
    beginning = " ".join([head, *(_record(number, row) for row in range(records))])
    return Pair(
        f"{beginning}\nRecord {records // 3 + number} in other words, and why somebody would keep it there:",
        f"{beginning}\nA short story about record {records // 2 + number}:",
    )


def _record(number: int, row: int) -> str:
    step = row * (number + 3) + number
    thing, colour, place = THINGS[step % len(THINGS)], COLOURS[step % len(COLOURS)], PLACES[step % len(PLACES)]
    return f"Record {row}: a {colour} {thing} in the {place}, {7 + 13 * step % 90} years old."
