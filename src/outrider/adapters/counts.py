"""What a server has counted since it started, and what was counted between two looks at it."""

from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, Self

COUNTED = ("rounds", "drafted", "accepted", "generated", "prompted", "finished", "looked_up", "cached")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers as the engine reports them.

    Attributes:
        rounds, drafted, accepted: verification rounds, tokens proposed, tokens accepted without the bonus token.
        per_position: rounds whose draft was accepted up to each position.
        generated, prompted, finished: tokens written, tokens of prompts, requests.
        looked_up, cached: prompt tokens looked up in the prefix cache, and found there.
        length, rate: what the engine itself says, of its last window, where it counts nothing.
        hit_rate: likewise of the prefix cache, 0..1.
        running: requests at work now.
        model: what it serves.
    """

    rounds: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    per_position: tuple[float, ...] = ()
    generated: float | None = None
    prompted: float | None = None
    finished: float | None = None
    looked_up: float | None = None
    cached: float | None = None
    length: float | None = None
    rate: float | None = None
    hit_rate: float | None = None
    running: float | None = None
    model: str | None = None

    def since(self, before: Self) -> Self | None:
        """Return what was counted in between, gauges as they are now; None where a count fell: the server restarted."""
        counted = {name: _difference(getattr(self, name), getattr(before, name)) for name in COUNTED}
        # A position that was not told before had not been reached.
        pairs = zip_longest(self.per_position, before.per_position, fillvalue=0.0)
        positions = tuple(now - then for now, then in pairs)
        if any(value is not None and value < 0 for value in (*counted.values(), *positions)):
            return None
        rest = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in COUNTED}
        return type(self)(**(rest | counted | {"per_position": positions}))

    def plus(self, later: Self) -> Self:
        """Return both as one count, gauges as they were later."""
        counted = {name: _sum(getattr(self, name), getattr(later, name)) for name in COUNTED}
        pairs = zip_longest(self.per_position, later.per_position, fillvalue=0.0)
        rest = {one.name: getattr(later, one.name) for one in fields(self) if one.name not in COUNTED}
        return type(self)(**(rest | counted | {"per_position": tuple(a + b for a, b in pairs)}))

    def part(self, *, seconds: float | None = None) -> dict[str, Any]:
        """Return the counters of an evidence file; ``seconds`` is the time in which they were counted."""
        hits = self.cached / self.looked_up if self.looked_up and self.cached is not None else self.hit_rate
        speed = self.generated / seconds if seconds and self.generated else None
        positions = list(self.per_position) if self.rounds else []
        # Averages over a window say nothing about the time in which nothing ran.
        length, rate = (None, None) if self.rounds and self.accepted is not None else (self.length, self.rate)
        return {
            "rounds": self.rounds or None,
            "drafted": self.drafted or None,
            "accepted": self.accepted if self.rounds or self.drafted else None,
            "accepted_per_position": positions,
            "acceptance_rate": rate,
            "mean_acceptance_length": length,
            "tokens_per_second": speed,
            "prefix_cache_hit_rate": hits or None,  # no hit may be a fault, or prompts that share nothing
        }


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None else now - (before or 0.0)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None and other is None else (one or 0.0) + (other or 0.0)
