"""What the numbers do, by name: the part of a known defect's signature that is no word."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Callable, Mapping
from typing import Literal

from outrider.doctor.observation import Observation
from outrider.doctor.rules.shape import MATERIAL, failure

Shape = Literal[
    "zero", "collapse", "even_loss", "steep", "tail", "falls_with_context", "falls_with_load", "decays",
    "collapse_with_prefix", "no_hits", "corrupt", "error", "past_block", "short_draft", "sampled", "slow",
    "slow_when_long", "slow_with_load", "backend", "precision", "conflict",
]  # fmt: skip
SLIGHT = (0.75, 0.97)
LONG = 32_000


def _moves(o: Observation, *dimensions: str) -> bool:
    ratios = (c.accepted for d in dimensions for c in o.at(d))
    return any(ratio is not None and not 1 / MATERIAL < ratio < MATERIAL for ratio in ratios)


def _steep(o: Observation) -> bool:
    rates = o.reading.conditional
    return len(rates) > 2 and rates[0] > 0.5 and rates[1] < 0.75 * rates[0]


def _tail(o: Observation) -> bool:
    rates = o.reading.positions
    return len(rates) > 4 and rates[0] > 0.4 and rates[-1] < 0.005


def _past_block(o: Observation) -> bool:
    depth, drafted = o.facts.trained_depth, o.facts.drafted
    return depth is not None and drafted is not None and drafted > depth


def _slow(o: Observation) -> bool:
    return o.reading.speedup is not None and o.reading.speedup < 1.05


SHAPES: Mapping[Shape, Callable[[Observation], bool]] = {
    "zero": lambda o: o.reading.nothing_accepted,
    "collapse": lambda o: o.reading.collapsed,
    "even_loss": lambda o: o.share is not None and SLIGHT[0] <= o.share <= SLIGHT[1],
    "steep": _steep,
    "tail": _tail,
    "falls_with_context": lambda o: _moves(o, "context"),
    "falls_with_load": lambda o: _moves(o, "concurrency"),
    "decays": lambda o: _moves(o, "time"),
    "collapse_with_prefix": lambda o: _moves(o, "prefix"),
    "no_hits": lambda o: o.reading.hits is not None and o.reading.hits < 0.5,
    "corrupt": lambda o: o.corrupt,
    "error": failure,
    "past_block": _past_block,
    "short_draft": lambda o: o.facts.block is not None and (o.facts.drafted or 99) * 2 < o.facts.block,
    "sampled": lambda o: (o.evidence.traffic.temperature or 0) > 0 or _moves(o, "sampling"),
    "slow": _slow,
    "slow_when_long": lambda o: _slow(o) and (o.evidence.traffic.prompt_tokens or 0) >= LONG,
    "slow_with_load": lambda o: _slow(o) and (o.evidence.traffic.concurrency or 1) > 1,
    "backend": lambda o: _moves(o, "backend"),
    "precision": lambda o: _moves(o, "precision"),
    "conflict": lambda o: bool(o.reading.conflicts),
}
