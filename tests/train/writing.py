"""Small targets, items and runs for the tests of training data."""

from collections.abc import Iterable, Iterator

import numpy as np
from engine.running import engine_of, finish

from outrider.drafters.none import NoDrafter
from outrider.engine.params import SamplingParams
from outrider.provenance import provenance
from outrider.train.manifest import Manifest, PromptCounts, Settings, SourceCounts, Target
from outrider.train.prompts import Prompt, Prompts
from outrider.train.texts import Text
from outrider.train.work import Item
from outrider.train.writer import Limits, Writer


def item(index: int, tokens: Iterable[int], temperature: float = 0.0) -> Item:
    return Item(index, Prompt((), 0, tuple(tokens)), temperature, 1000 + index)


def items_of(count: int, *, vocab: int, longest: int, temperatures=(0.0, 0.7, 1.0), seed: int = 0) -> list[Item]:
    """Prompts of all lengths at all temperatures."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=count)
    return [
        item(index, rng.integers(vocab, size=length).tolist(), temperatures[index % len(temperatures)])
        for index, length in enumerate(lengths)
    ]


def write(target, items: Iterable[Item], limits: Limits, *, batch: int = 4, **options) -> dict[int, Text]:
    writer = Writer(target, batch=batch, limits=limits, **options)
    return {text.item.index: text for text in writer.write(iter(items))}


def by_the_engine(target, items: Iterable[Item], limits: Limits) -> dict[int, list[int]]:
    """What plain decoding says to each item with its seed, one after the other."""
    engine = engine_of(target, NoDrafter(), max_len=limits.max_len)
    said = {}
    for one in items:
        params = SamplingParams(temperature=one.temperature, seed=one.seed, max_tokens=limits.max_tokens)
        said[one.index] = finish(engine, [(one.prompt.tokens, params)], stop_ids=limits.stop_ids)[0].output
    return said


class Canned:
    """Answers without a model, in whatever order; counts what it was asked."""

    def __init__(self, answer, *, backwards: int = 1) -> None:
        self.answer, self.backwards = answer, backwards
        self.asked: list[int] = []

    def write(self, items: Iterator[Item]):
        group: list[Text] = []
        for one in items:
            self.asked.append(one.index)
            answer = self.answer(one)
            text = answer if isinstance(answer, Text) else Text(one, np.array(answer, dtype=np.int32), ended=True)
            group.append(text)
            if len(group) == self.backwards:
                yield from reversed(group)
                group = []
        yield from reversed(group)


def prompts_of(*sizes: int, first: int = 10) -> Prompts:
    """Sources of so many prompts, each of two tokens that no other has."""
    by_source = []
    for source, size in enumerate(sizes):
        by_source.append(tuple(Prompt((), source, (source, first + n)) for n in range(size)))
    return Prompts(tuple(f"s{n}" for n in range(len(sizes))), tuple(by_source), PromptCounts(), "0" * 64)


def manifest_of(made: Prompts, **settings) -> Manifest:
    chosen = {
        "temperatures": [(0.0, 1.0)],
        "top_k": 0,
        "top_p": 1.0,
        "max_tokens": 8,
        "max_len": 16,
        "max_repeats": 0,
        "thinking": None,
        "seed": 0,
        "weights": {},
        "prompts": made.digest,
        "server": None,
        "dtype": "float32",
        "shard_samples": 4,
    } | settings
    return Manifest(
        target=Target(name="tiny", files={"model.safetensors": "f" * 64}, vocab_size=300),
        settings=Settings(**chosen),
        rows=made.counts,
        sources=[
            SourceCounts(name=name, prompts=len(of)) for name, of in zip(made.sources, made.by_source, strict=True)
        ],
        provenance=provenance(),
    )
