"""A file of prompts: one JSON object a line, with ``prompt``, ``turns``, ``messages`` or ``conversations``.

Of several turns the first of the user is taken; ``conversations`` is the form of ShareGPT, ``messages`` of chat APIs.
"""

import json
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from outrider.commands.prompt import read_text
from outrider.errors import UsageError


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt, and what kind of text it is where the file says so."""

    prompt: str
    category: str = ""


def read_rows(path: Path, limit: int | None = None) -> list[Row]:
    """Return the rows of a JSONL file, at most ``limit``; empty lines are passed over.

    Raises:
        UsageError: unreadable, no rows, or a row that holds no prompt; says the line.
    """
    return rows_of(read_text(path), path.name, limit)


def rows_of(text: str, name: str, limit: int | None = None) -> list[Row]:
    """Return the rows of a JSONL text; ``name`` is what errors call it."""
    numbered = ((i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip())
    rows = [_row(line, f"{name}, line {number}") for number, line in islice(numbered, limit)]
    if not rows:
        raise UsageError(f"{name} holds no prompts: expected one JSON object a line.")
    return rows


def _row(line: str, where: str) -> Row:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not valid JSON ({error}).") from None
    if not isinstance(values, dict):
        raise UsageError(f"{where}: expected a JSON object, found a {type(values).__name__}.")
    return Row(_prompt(values, where), str(values.get("category", "")))


def _prompt(values: dict[str, Any], where: str) -> str:
    turns = values.get("turns")
    prompt = turns[0] if isinstance(turns, list) and turns else values.get("prompt") or _first_of_user(values)
    if isinstance(prompt, str) and prompt:
        return prompt
    raise UsageError(
        f'{where}: expected "prompt" with a text, "turns" with a list of texts, or a conversation; found the keys '
        f"{', '.join(map(str, values)) or 'none'}."
    )


def _first_of_user(values: dict[str, Any]) -> Any:
    """Return what the user says first in a conversation."""
    for turns, who, said in (("messages", "role", "content"), ("conversations", "from", "value")):
        listed = values.get(turns)
        for turn in listed if isinstance(listed, list) else ():
            if isinstance(turn, dict) and turn.get(who) in ("user", "human"):
                return turn.get(said)
    return None
