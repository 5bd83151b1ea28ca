"""How many tokens a round gives: measured by whoever asks, else published for this target, else for others."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from outrider.adapters.methods import METHODS, Method
from outrider.errors import UnknownNameError, UsageError

How = Literal["measured", "published", "modelled"]
TREE_GAIN = (1.0, 1.25)
"""Of a tree's acceptance length over the chain's of the same drafter: none to a quarter in public measurements."""
_GIVEN = re.compile(r"(?P<method>\w+)(?::(?P<tokens>\d+))?=(?P<length>\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """An acceptance length.

    Attributes:
        method: which.
        tokens: drafted a round; None where the source does not say.
        low, high: bounds; the same where one number was measured.
        how: where it comes from.
        source: likewise, in words.
        foreign: it was published for another target.
    """

    method: Method
    tokens: int | None
    low: float
    high: float
    how: How
    source: str
    foreign: bool = False


@cache
def _published() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    return tomllib.loads(files("outrider.planning").joinpath("data/acceptance.toml").read_text("utf-8"))


def published(target: str, method: Method) -> Expected | None:
    """Return what was published for a target, else for others; None where nothing was."""
    for name in (target, "*"):
        for row in _published().get(name, ()):
            if row["method"] == method:
                return Expected(**row, how="published", foreign=name == "*")
    return None


def measured(text: str) -> Expected:
    """Read ``METHOD[:TOKENS]=LENGTH``.

    Raises:
        UsageError: no such text.
    """
    found = _GIVEN.fullmatch(text.replace(" ", ""))
    if found is None:
        raise UsageError(f"--accept {text!r}: expected METHOD[:TOKENS]=LENGTH, for example mtp:3=2.65.")
    method = next((one for one in METHODS if one == found["method"]), None)
    if method is None:
        raise UnknownNameError("method", found["method"], METHODS)
    length, tokens = float(found["length"]), int(found["tokens"]) if found["tokens"] else None
    if length < 1 or (tokens is not None and length > tokens + 1):
        raise UsageError(f"--accept {text!r}: an acceptance length counts the bonus token: from 1 to TOKENS + 1.")
    return Expected(method=method, tokens=tokens, low=length, high=length, how="measured", source="given by --accept")


def as_tree(chain: Expected) -> Expected:
    """Return what a tree over the same drafter should give."""
    return Expected(
        method="ddtree",
        tokens=chain.tokens,
        low=chain.low * TREE_GAIN[0],
        high=chain.high * TREE_GAIN[1],
        how="modelled",
        source=f"the chain's ({chain.source}) times {TREE_GAIN[0]:g} to {TREE_GAIN[1]:g}",
    )
