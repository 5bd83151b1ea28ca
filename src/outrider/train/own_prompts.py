"""Prompts that the target writes itself: it goes on from an empty user turn, drawn at temperature 1.

They are kept in the data folder, so that a run that goes on has the same ones.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.train.encoding import Encoder
from outrider.train.manifest import store
from outrider.train.prompts import Prompt
from outrider.train.rows import Row, Rows, read_file
from outrider.train.texts import in_order
from outrider.train.work import Item
from outrider.train.writer import Limits, Writer

SOURCE = "self"
MAX_TOKENS = 256  # what is longer did not find an end
TRIES = 3  # for each prompt wanted: some come twice, some do not end


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How many prompts, from which seed, so many written at once."""

    count: int
    seed: int
    batch: int


def own_prompts(
    folder: Path, decoder: Decoder, encoder: Encoder, wanted: Wanted, told: Callable[[], None] = lambda: None
) -> Rows:
    """Read the folder's own prompts, or have them written.

    Args:
        folder: of the data.
        decoder: the target.
        encoder: knows its empty turn.
        wanted: how many.
        told: is called for each prompt that is kept.

    Raises:
        UsageError: the template has no user turn, nothing came of it, or the folder cannot be written.
    """
    path = folder / f"own_prompts-{wanted.count}-{wanted.seed}.jsonl.gz"
    if not path.is_file():
        texts = _write(decoder, encoder, wanted, told)
        lines = "".join(json.dumps({"prompt": text}) + "\n" for text in texts)
        store(path, gzip.compress(lines.encode(), mtime=0))
    found = read_file(path)
    return Rows(SOURCE, [Row(row.messages, SOURCE) for row in found.rows[: wanted.count]])


def _write(decoder: Decoder, encoder: Encoder, wanted: Wanted, told: Callable[[], None]) -> list[str]:
    opening, ends = encoder.empty_turn()
    max_tokens = min(MAX_TOKENS, decoder.shape.max_positions - len(opening))
    limits = Limits(max_len=len(opening) + max_tokens, max_tokens=max_tokens, stop_ids=ends)
    writer = Writer(decoder, batch=min(wanted.batch, wanted.count), limits=limits)
    kept: dict[str, None] = {}
    with closing(writer.write(_turns(opening, wanted))) as texts:
        # In the order of the items: the same seed gives the same prompts, whichever was ready first.
        for text in in_order(texts):
            words = encoder.tokenizer.decode(text.tokens.tolist()).strip() if text.ended else ""
            if words and words not in kept:
                kept[words] = None
                told()
            if len(kept) == wanted.count:
                break
    if not kept:
        raise UsageError("--self: the model wrote no prompt that ends; give prompts with --prompts or --hub.")
    return list(kept)


def _turns(opening: tuple[int, ...], wanted: Wanted) -> Iterator[Item]:
    seeds = np.random.default_rng(wanted.seed).integers(1 << 62, size=wanted.count * TRIES)
    prompt = Prompt((), 0, opening)
    return (Item(index, prompt, 1.0, int(seed)) for index, seed in enumerate(seeds))
