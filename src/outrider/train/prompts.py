"""All prompts of a run: gathered from their places, encoded, each once, by kind.

Where rows come from is in ``rows``, how they become tokens in ``encoding``.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from outrider.errors import UsageError
from outrider.train.encoding import Encoder
from outrider.train.manifest import PromptCounts
from outrider.train.rows import Messages, Row, Rows

TOGETHER = 4096  # rows encoded in one go
MOST_SOURCES = 255  # a shard keeps a byte of it


@dataclass(frozen=True, slots=True)
class Prompt:
    """One conversation that waits for an answer.

    Attributes:
        source: place in the list of sources.
        tokens: as the target is served it.
    """

    messages: Messages
    source: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prompts:
    """Each prompt once.

    Attributes:
        sources: names of the kinds.
        by_source: prompts of each kind.
        counts: what became of the rows.
        digest: SHA-256 of all of it.
    """

    sources: tuple[str, ...]
    by_source: tuple[tuple[Prompt, ...], ...]
    counts: PromptCounts
    digest: str

    def __len__(self) -> int:
        return sum(map(len, self.by_source))


def gather(
    places: Iterable[Rows],
    encoder: Encoder,
    *,
    longest: int,
    report: Callable[[str], None],
) -> Prompts:
    """Encode rows and drop those that are there already or do not fit.

    Args:
        places: files, data sets, the model's own.
        encoder: of the target.
        longest: most tokens of a prompt.
        report: is told of rows that were passed over.

    Raises:
        UsageError: nothing is left, or there are too many kinds.
    """
    made = _Gathering(encoder, longest)
    for rows in places:
        total = rows.broken + len(rows.rows)
        made.add(rows)
        if rows.broken:
            report(f"{rows.name}: {rows.broken} of {total} rows passed over; the first: {rows.first_broken}")
    return made.done()


class _Gathering:
    def __init__(self, encoder: Encoder, longest: int) -> None:
        self._encoder, self._longest = encoder, longest
        self._seen: set[tuple[int, ...]] = set()
        self._names: dict[str, int] = {}
        self._prompts: list[list[Prompt]] = []
        self._rows = self._broken = self._duplicates = self._long = 0

    def add(self, rows: Rows) -> None:
        self._rows += rows.broken + len(rows.rows)
        for start in range(0, len(rows.rows), TOGETHER):
            some = rows.rows[start : start + TOGETHER]
            encoded = self._encoder.encode([row.messages for row in some])
            for row, tokens in zip(some, encoded, strict=True):
                self._take(rows, row, tokens)
        self._broken += rows.broken

    def _take(self, rows: Rows, row: Row, tokens: tuple[int, ...] | UsageError) -> None:
        if isinstance(tokens, UsageError):
            rows.refuse(str(tokens))
        elif len(tokens) > self._longest:
            self._long += 1
        elif tokens in self._seen:
            self._duplicates += 1
        else:
            self._seen.add(tokens)
            self._keep(row.messages, row.source, tokens)

    def _keep(self, messages: Messages, name: str, tokens: tuple[int, ...]) -> None:
        source = self._names.setdefault(name, len(self._names))
        if source == len(self._prompts):
            self._prompts.append([])
        self._prompts[source].append(Prompt(messages, source, tokens))

    def done(self) -> Prompts:
        if not self._prompts:
            raise UsageError(
                f"There are no prompts left: of {self._rows} rows {self._broken} were broken and {self._long} longer "
                f"than {self._longest} tokens. Give others, or raise --max-len."
            )
        if len(self._names) > MOST_SOURCES:
            raise UsageError(f"The prompts are of {len(self._names)} kinds (their key source); at most {MOST_SOURCES}.")
        counts = PromptCounts(rows=self._rows, broken=self._broken, duplicates=self._duplicates, too_long=self._long)
        by_source = tuple(map(tuple, self._prompts))
        return Prompts(tuple(self._names), by_source, counts, _digest(self._names, by_source))


def _digest(names: Iterable[str], by_source: Iterable[Iterable[Prompt]]) -> str:
    digest = hashlib.sha256()
    for name, prompts in zip(names, by_source, strict=True):
        digest.update(f"\0{name}\0".encode())
        for prompt in prompts:
            digest.update(np.array([len(prompt.tokens), *prompt.tokens], dtype=np.int64).tobytes())
    return digest.hexdigest()
