"""Checked access to the keys of a drafter's config, wherever in it they stand.

What is missing or impossible is noted as a problem and replaced by a value that fits the type, so that one reading
finds everything. Knows no key's meaning.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from outrider.models.dflash.formats.problems import Problem


class Keys:
    """The objects of a config that may hold a key, the one that counts first before the others.

    Args:
        places: name of the object, as messages show it, and its keys.

    Attributes:
        problems: what was found so far.
        notes: what a reader should know that is no problem.
    """

    def __init__(self, places: Mapping[str, Mapping[str, Any]]) -> None:
        self._places = places
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def say(self, key: str, message: str, *, fatal: bool = False) -> None:
        """Note a problem, once."""
        problem = Problem(key, message, fatal)
        if problem not in self.problems:
            self.problems.append(problem)

    def get(self, key: str, *others: str) -> Any:
        """Return the value of a key, or of another of its names; null counts as absent, and absent is None.

        Two places that differ are a problem; the first of them counts.
        """
        found = [
            (f"{place}{name}", held[name])
            for name in (key, *others)
            for place, held in self._places.items()
            if held.get(name) is not None
        ]
        if not found:
            return None
        (first, value), *rest = found
        for name, other in rest:
            if other != value:
                self.say(
                    key,
                    f"{first} is {shown(value)} and {name} is {shown(other)}; keep one of them "
                    f"(allowed, {first} counts).",
                )
        return value

    def integer(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """Return a whole number."""
        value = self.get(key)
        value = default if value is None else value
        if is_integer(value) and value >= least:
            return value
        self._wrong(key, f"a whole number of at least {least}", value)
        return least

    def optional(self, key: str, *others: str, least: int = 1) -> int | None:
        """Return a whole number, or None where there is none."""
        value = self.get(key, *others)
        if is_integer(value) and value >= least:
            return value
        if value is not None:
            self._wrong(key, f"a whole number of at least {least}", value)
        return None

    def number(self, key: str, default: float) -> float:
        """Return a number above 0."""
        value = self.get(key)
        value = default if value is None else value
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if numeric and 0 < value <= sys.float_info.max:  # JSON as Python reads it knows NaN and Infinity
            return float(value)
        self._wrong(key, "a number above 0", value)
        return default

    def flag(self, key: str, *others: str) -> bool | None:
        """Return a truth value, or None where there is none."""
        value = self.get(key, *others)
        if value is None or isinstance(value, bool):
            return value
        self._wrong(key, "true or false", value)
        return None

    def word(self, key: str, known: Iterable[str], default: str) -> str:
        """Return one of the known words."""
        value = self.get(key)
        value = default if value is None else value
        if value in known:
            return str(value)
        self._wrong(key, f"one of {', '.join(known)}", value)
        return default

    def integers(self, key: str, *others: str) -> tuple[int, ...] | None:
        """Return a list of whole numbers, or None where there is none."""
        value = self.get(key, *others)
        if value is None:
            return None
        if isinstance(value, list) and value and all(map(is_integer, value)):
            return tuple(value)
        self._wrong(key, "a list of whole numbers", value)
        return None

    def report_unknown(self, known: Iterable[str]) -> None:
        """Note every key that is not among the known ones."""
        for place, held in self._places.items():
            for key, value in held.items():
                if key not in known and value is not None:
                    self.say(
                        key,
                        f"{place}{key} is {shown(value)}, and what it means is not known; take it out if it means "
                        "nothing (allowed, it is passed over).",
                    )

    def _wrong(self, key: str, expected: str, value: Any) -> None:
        found = "none" if value is None else shown(value)
        self.say(key, f"expected {expected}, found {found}; correct it in the config.", fatal=True)


def is_integer(value: Any) -> TypeGuard[int]:
    """Say whether this is a whole number and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """Return a value for a message of one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 -- characters
