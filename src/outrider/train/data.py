"""Training data for a drafter: prompts in, answers of the target out, in shards that a stopped run adds to.

Answers come in any order and are kept in the order of their items, so a shard is the same however often the run
was stopped. Who writes the answers, the embedded engine or a server, is not known here.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from outrider.errors import UsageError
from outrider.train.manifest import NAME, Fates, Manifest, Settings, Shard, read_manifest
from outrider.train.repeats import loop_start
from outrider.train.shards import Sample, ShardWriter
from outrider.train.texts import Text, in_order
from outrider.train.work import Item, Plan


class Answering(Protocol):
    """What writes answers."""

    def write(self, items: Iterator[Item]) -> Generator[Text, None, None]:
        """Yield an answer to each item, in any order; who stops reading ends the writing."""
        ...


@dataclass(frozen=True, slots=True)
class Told:
    """What a watcher is told.

    Attributes:
        tokens: new response tokens.
        items: answered now.
        shard: just written, if one was.
    """

    tokens: int
    items: int
    shard: Shard | None = None


Watch = Callable[[Told], None]


def open_folder(folder: Path, manifest: Manifest) -> ShardWriter:
    """Begin a data folder, or go on with one that was begun under the same settings.

    Args:
        folder: of the data.
        manifest: what it would be, without shards.

    Raises:
        UsageError: what is there was made under other settings or from other files.
    """
    if not (folder / NAME).is_file():
        return ShardWriter(folder, manifest)
    found = read_manifest(folder)
    difference = _difference(found, manifest)
    if difference:
        raise UsageError(
            f"{folder} holds data made with {difference}. Name another folder with --out, or go on as it was begun."
        )
    return ShardWriter(folder, found.model_copy(update={"complete": False}))


def _difference(found: Manifest, wanted: Manifest) -> str:
    """Name the first thing in which two runs differ."""
    if found.target.files != wanted.target.files:
        return "another target: its files have changed"
    for name in Settings.model_fields:
        before, now = getattr(found.settings, name), getattr(wanted.settings, name)
        if before != now:
            return "other prompts" if name == "prompts" else f"{name} {before}, now {now}"
    return ""


def make_data(plan: Plan, answering: Answering, out: ShardWriter, *, tokens: int | None, watch: Watch) -> None:
    """Have the plan answered and written, from the first item that no shard answers.

    Args:
        plan: what to answer.
        answering: who does.
        out: where it goes.
        tokens: end when there are so many response tokens in all; None goes on to the plan's end.
        watch: is told of each answer and each shard.

    Raises:
        UsageError: the disk is full, the server is down, or no answer could be used.
    """
    shard = _Shard(out, tokens)
    if shard.full:
        out.finish()
        return
    with closing(answering.write(plan.items(shard.begin))) as texts:
        for text in in_order(texts, shard.begin):
            new = shard.take(text)
            watch(Told(new, 1, shard.write() if shard.due else None))
            if shard.full:
                break
    if shard.samples:
        watch(Told(0, 0, shard.write()))
    out.finish(answered=shard.answered, fates=shard.fates)
    if not out.manifest.samples:
        raise UsageError(f"No answer could be used: {_fates(out.manifest.fates)}.")


@dataclass(slots=True)
class _Shard:
    """The shard that is being filled.

    Attributes:
        goal: response tokens of all shards at which to end.
    """

    out: ShardWriter
    goal: int | None
    samples: list[Sample] = field(default_factory=list)
    fates: Fates = field(default_factory=Fates)
    tokens: int = 0
    answered: int = 0

    @property
    def begin(self) -> int:
        return self.out.manifest.next

    @property
    def full(self) -> bool:
        """Whether all that was asked for is there."""
        return self.goal is not None and self.out.manifest.response_tokens + self.tokens >= self.goal

    @property
    def due(self) -> bool:
        enough = self.answered >= self.out.manifest.settings.shard_samples
        return bool(self.samples) and (enough or self.full)

    def take(self, text: Text) -> int:
        """Keep an answer, whole or cut; return how many tokens of it."""
        self.answered += 1
        kept, fate = self._kept(text)
        self.fates = self.fates.plus(fate)
        if kept == 0:
            return 0
        prompt = text.item.prompt
        tokens = np.concatenate((np.array(prompt.tokens, dtype=np.int32), text.tokens[:kept]))
        self.samples.append(Sample(tokens, len(prompt.tokens), prompt.source, text.item.temperature))
        self.tokens += kept
        return kept

    def _kept(self, text: Text) -> tuple[int, Fates]:
        if text.refusal:
            return 0, Fates(refused=1)
        if len(text.tokens) <= int(text.ended):
            return 0, Fates(empty=1)
        most = self.out.manifest.settings.max_repeats
        loop = loop_start(text.tokens, most) if most else None
        if loop is not None:
            return loop, Fates(looping=1)
        return len(text.tokens), Fates(ended=1) if text.ended else Fates(full=1)

    def write(self) -> Shard:
        written = self.out.write(self.samples, answered=self.answered, fates=self.fates)
        self.samples, self.fates, self.tokens, self.answered = [], Fates(), 0, 0
        return written


def _fates(fates: Fates) -> str:
    return ", ".join(f"{count} {name}" for name, count in fates.model_dump().items() if count) or "there was none"
