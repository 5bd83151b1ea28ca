"""Many texts at once by plain decoding of the target: greedy and drawn ones side by side.

A slot is filled anew as soon as its text is over. A text depends on its own prompt and numbers alone (but for
near-ties of half precision): with the same seed it is the text that the engine writes.
Shape letters: B slots, P prompts read together, L tokens of the longest of them.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from outrider.engine.tree import DraftTree
from outrider.engine.walk import whole
from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.train.drawing import choose
from outrider.train.ragged import RaggedMix, can_run
from outrider.train.slots import Slots, Start
from outrider.train.steps import Steps
from outrider.train.texts import Text
from outrider.train.work import Item

STEPS = 16  # between two looks at which texts are over; a text that is over waits half of it on average
SPAN = 128  # columns are read in multiples of it where rows are not read by their own lengths
AHEAD = 4  # of as many items as a quarter of the slots, prompts of similar length are read together
READ_TOKENS = 16384  # of one pass over prompts, padding included
ALIGNED = 8  # prompts are padded to multiples of it, which attention kernels want


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long texts grow and what they end with.

    Attributes:
        max_len: of prompt and response together.
        max_tokens: of a response.
    """

    max_len: int
    max_tokens: int
    stop_ids: frozenset[int]


class Writer:
    """Writes answers with a loaded target.

    Args:
        decoder: the target.
        batch: texts at once.
        limits: of each text.
        top_k: of drawn texts; 0 keeps all words.
        top_p: likewise; 1 keeps all.

    Raises:
        UsageError: more memory than there is, or more columns than the target's context.
    """

    def __init__(self, decoder: Decoder, *, batch: int, limits: Limits, top_k: int = 0, top_p: float = 1.0) -> None:
        self._decoder, self._limits = decoder, limits
        self._top_k, self._top_p = top_k, top_p
        self._batch = max(batch, 2)  # a pass over a single row reads exactly its columns: no fixed span
        context = decoder.shape.max_positions
        if limits.max_len > context:
            raise UsageError(f"--max-len {limits.max_len}: the model's context holds {context} tokens; lower it.")
        self._ragged = can_run(decoder.device)
        try:
            self._cache = decoder.new_cache(slots=self._batch, max_len=limits.max_len)
        except RuntimeError as error:  # out of memory is one
            raise UsageError(_too_big(decoder, self._batch, limits.max_len)) from error
        self._slots = Slots(self._batch, limits.max_tokens, limits.stop_ids, decoder.shape.vocab_size, decoder.device)
        spans = [limits.max_len] if self._ragged else [*range(SPAN, limits.max_len, SPAN), limits.max_len]
        self._steps = Steps(self._step, spans, decoder.device)

    @torch.inference_mode()
    def write(self, items: Iterator[Item]) -> Generator[Text, None, None]:
        """Yield the answers as they are ready, in no order; who stops reading ends the writing.

        Texts that were begun are lost then, and the writer must not be used again.

        Raises:
            UsageError: more memory than there is.
        """
        try:
            yield from self._write(_Ahead(items, self._limits.max_tokens, group=max(self._batch // AHEAD, 1)))
        except torch.OutOfMemoryError as error:
            raise UsageError(_too_big(self._decoder, self._batch, self._limits.max_len)) from error

    def _write(self, ahead: "_Ahead") -> Iterator[Text]:
        self._steps.record()
        ready: list[Text] = []
        self._fill(ahead)
        while self._slots.busy:
            self._steps.run(self._columns(), times=STEPS)
            # While the device works: the reader takes what is ready, and the next prompts are made.
            yield from ready
            ahead.prepare()
            ready = self._slots.collect()
            self._fill(ahead)
        yield from ready

    def _columns(self) -> int:
        if self._ragged:
            return self._limits.max_len
        return min(self._slots.longest() + STEPS, self._limits.max_len)

    def _step(self, span: int) -> None:
        """Choose one token for every text."""
        slots = self._slots
        tree, rows = DraftTree.chain(slots.tokens_B1), slice(0, slots.size)
        out = self._decoder.forward(
            tree,
            self._cache,
            rows,
            slots.lengths_B,
            span=span,
            mix=RaggedMix(slots.lengths_B) if self._ragged else None,
        )
        self._cache.commit(rows, slots.lengths_B, whole(tree).path_BN, tree.counts_B, in_place=True)
        logits_BV = self._decoder.logits(out.hidden_BNH[:, 0])
        chosen_B = choose(logits_BV, slots.temperature_B, slots.uniform_B(), top_k=self._top_k, top_p=self._top_p)
        slots.take(chosen_B)

    def _fill(self, ahead: "_Ahead") -> None:
        """Put prompts into the slots that are free."""
        free = self._slots.free
        starts = ahead.take(len(free))
        if not starts:
            return
        slots = free[: len(starts)]
        self._slots.begin(slots, starts)
        begin = 0
        while begin < len(starts):
            end = _group(starts, begin)
            self._read(slots[begin:end], starts[begin:end])
            begin = end

    def _read(self, slots: Sequence[int], starts: Sequence[Start]) -> None:
        """Read prompts but for their last tokens, beside the cache, and lay their keys and values into it."""
        prompts = [start.item.prompt.tokens[:-1] for start in starts]
        length = _padded(max(map(len, prompts)))
        device, rows = self._decoder.device, slice(0, len(prompts))
        places_P = torch.tensor(slots, device=device)
        if length == 0:
            self._cache.clear(places_P)
            return
        tokens_PL = np.zeros((len(prompts), length), dtype=np.int64)
        for row, prompt in zip(tokens_PL, prompts, strict=True):
            row[: len(prompt)] = prompt
        beside = self._decoder.new_cache(slots=len(prompts), max_len=length)
        nothing_P = torch.zeros(len(prompts), dtype=torch.int64, device=device)
        counts_P = torch.tensor([len(prompt) for prompt in prompts], device=device)
        tree = DraftTree.chain(torch.from_numpy(tokens_PL).to(device), counts_P)
        self._decoder.forward(tree, beside, rows, nothing_P, span=length)
        beside.commit(rows, nothing_P, whole(tree).path_BN, counts_P, in_place=True)
        columns = min(length, self._limits.max_len)  # the padding may reach beyond the cache
        self._cache.take(places_P, beside, slice(0, columns))


def _group(starts: Sequence[Start], begin: int) -> int:
    """Return the end of the prompts, sorted by length, that are read in one pass."""
    end = begin + 1
    while end < len(starts):
        longest = _padded(len(starts[end].item.prompt.tokens) - 1)
        if longest * (end + 1 - begin) > READ_TOKENS:
            break
        end += 1
    return end


def _padded(length: int) -> int:
    return -(-length // ALIGNED) * ALIGNED


def _too_big(decoder: Decoder, batch: int, max_len: int) -> str:
    c = decoder.config
    per_token = c.kv_elements_per_token * decoder.activations.itemsize
    return (
        f"Keys and values of {batch} texts of {max_len} tokens take {batch * max_len * per_token / 1e9:.1f} GB, more "
        f"than is free on {decoder.device}: lower --batch or --max-len."
    )


class _Ahead:
    """Items made ready while the device works, and sorted by length in groups.

    Groups are small, since answers are waited for in the order of their items.
    """

    def __init__(self, items: Iterator[Item], limit: int, *, group: int) -> None:
        self._items, self._limit, self._group = items, limit, group
        self._ready: deque[Start] = deque()

    def prepare(self) -> None:
        """Have at least one group ready, or what is left."""
        if len(self._ready) < self._group:
            group = sorted(islice(self._items, self._group), key=lambda item: len(item.prompt.tokens))
            self._ready.extend(Start.of(item, self._limit) for item in group)

    def take(self, count: int) -> list[Start]:
        """Take up to ``count``, shortest prompts first."""
        taken: list[Start] = []
        while len(taken) < count:
            self.prepare()
            if not self._ready:
                break
            taken.append(self._ready.popleft())
        return sorted(taken, key=lambda start: len(start.item.prompt.tokens))
