"""Rows of prompts as people keep them: JSONL files, plain or gzipped, and data sets of the hub.

A row that cannot be used is passed over, counted, and the first one of each file is named. Knows no tokens.
"""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from outrider.errors import UsageError

Messages = tuple[Mapping[str, Any], ...]
GZIP = b"\x1f\x8b"
MOST_KINDS = 32  # of rows in one file; a key "source" with more values names rows, not kinds
HUB_PARTS = (2, 3)  # NAME:COLUMN, NAME:COLUMN:SPLIT


@dataclass(frozen=True, slots=True)
class Row:
    """What a user asks, and what kind of text it is."""

    messages: Messages
    source: str


@dataclass(slots=True)
class Rows:
    """The usable rows of one place, and what was passed over.

    Attributes:
        name: of the place; the source of rows that name none.
        broken: rows passed over.
        first_broken: what was wrong with the first of them, and where.
    """

    name: str
    rows: list[Row] = field(default_factory=list)
    broken: int = 0
    first_broken: str = ""

    def take(self, values: Any, where: str) -> None:
        """Add a row, or count it as broken."""
        try:
            self.rows.append(Row(messages_of(values), _source_of(values, self.name)))
        except UsageError as error:
            self.refuse(f"{where}: {error}")

    def refuse(self, reason: str) -> None:
        """Count a broken row."""
        self.broken += 1
        self.first_broken = self.first_broken or reason

    def checked(self) -> "Rows":
        """Return these rows.

        Raises:
            UsageError: not one can be used.
        """
        if not self.rows and self.broken:
            raise UsageError(
                f"None of the {self.broken} rows of {self.name} can be used; the first: {self.first_broken}"
            )
        if not self.rows:
            raise UsageError(f"{self.name} holds no prompts: expected one JSON object a line.")
        if len(Counter(row.source for row in self.rows)) > MOST_KINDS:
            self.rows = [Row(row.messages, self.name) for row in self.rows]
        return self


def read_file(path: Path, *, limit: int | None = None) -> Rows:
    """Read a JSONL file, plain or gzipped: rows with ``prompt``, ``turns`` or ``messages``.

    Args:
        path: the file.
        limit: at most so many rows.

    Raises:
        UsageError: unreadable, empty, or not one row can be used.
    """
    rows = Rows(path.name)
    try:
        for number, line in islice(_lines(path), limit):
            where = f"line {number}"
            try:
                values = json.loads(line)
            except (ValueError, RecursionError) as error:  # bytes that are no UTF-8 are a ValueError too
                rows.refuse(f"{where}: not valid JSON ({error}).")
            else:
                rows.take(values, where)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"Cannot read the file {path}: {reason}.") from None
    return rows.checked()


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as start:
        is_packed = start.read(len(GZIP)) == GZIP
    with gzip.open(path, "rb") if is_packed else path.open("rb") as file:
        yield from _numbered(file)


def _numbered(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(file, start=1) if line.strip())


def read_hub(wanted: str, *, limit: int | None = None, load: Callable[..., Any] | None = None) -> Rows:
    """Read a column of a data set on the hub: texts, lists of turns, or conversations.

    Args:
        wanted: ``NAME:COLUMN`` or ``NAME:COLUMN:SPLIT``.
        limit: at most so many rows.
        load: opens a data set; ``datasets.load_dataset`` if left out.

    Raises:
        UsageError: another form, no such data set or column, or not one row can be used.
    """
    parts = wanted.split(":")
    if len(parts) not in HUB_PARTS or not all(parts):
        raise UsageError(f"--hub {wanted!r}: expected NAME:COLUMN or NAME:COLUMN:SPLIT, as owner/set:prompt:train.")
    name, column, split = (*parts, "train")[:3]
    rows = Rows(name)
    try:
        found = (load or _load_dataset())(name, split=split, streaming=True)
        for number, values in enumerate(islice(found, limit), start=1):
            rows.take(_column(values, column, name) | _kind(values), f"row {number}")
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 -- the library raises what its many readers raise
        raise UsageError(f"Cannot read {name} ({split}) from the hub: {' '.join(str(error).split())}") from None
    return rows.checked()


def _load_dataset() -> Callable[..., Any]:
    try:
        load: Callable[..., Any] = import_module("datasets").load_dataset
    except ModuleNotFoundError:
        raise UsageError("--hub needs the package datasets: pip install 'outrider[train]'.") from None
    return load


def _column(values: Mapping[str, Any], column: str, name: str) -> dict[str, Any]:
    """Return a column's value under the key that says what it is."""
    if column not in values:
        raise UsageError(f"{name} has no column {column!r}; it has {', '.join(values)}.")
    value = values[column]
    if isinstance(value, list):
        return {"messages" if value and isinstance(value[0], Mapping) else "turns": value}
    return {"prompt": value}


def _kind(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: values[key] for key in ("source", "category") if key in values}


def messages_of(values: Any) -> Messages:
    """Return the conversation up to its first user turn.

    Raises:
        UsageError: the row holds none.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"expected a JSON object, found a {type(values).__name__}.")
    messages = values.get("messages")
    if isinstance(messages, list):
        return _opening(messages)
    turns = values.get("turns")
    prompt = turns[0] if isinstance(turns, list) and turns else values.get("prompt")
    if isinstance(prompt, str) and prompt.strip():
        return ({"role": "user", "content": prompt},)
    raise UsageError(
        'expected "prompt" with a text, "turns" with a list of texts or "messages" with roles and contents; found '
        f"the keys {', '.join(map(str, values)) or 'none'}."
    )


def _opening(messages: list[Any]) -> Messages:
    """Keep what stands before the first user turn, and that turn."""
    kept = []
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, str):
            break
        kept.append({"role": message.get("role"), "content": content})
        if message.get("role") == "user":
            if content.strip():
                return tuple(kept)
            break
        if message.get("role") != "system":
            break
    raise UsageError('expected "messages" to open with a user turn (or system, then user) whose content is a text.')


def _source_of(values: Mapping[str, Any], default: str) -> str:
    for key in ("source", "category"):
        if isinstance(values.get(key), str) and values[key]:
            return str(values[key])
    return default
