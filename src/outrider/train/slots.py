"""The texts being written, side by side on the device: where each stands, and what it says so far.

A step changes all of it in place and asks the device nothing, so that steps can be recorded and played again.
Shape letters: B slots, R slots that are filled anew, T tokens of a response, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from outrider.engine.uniforms import DECIDE, Uniforms
from outrider.train.texts import Text
from outrider.train.work import Item


@dataclass(frozen=True, slots=True)
class Start:
    """An item on its way into a slot, with the random numbers that will decide its words."""

    item: Item
    uniforms_T: np.ndarray

    @classmethod
    def of(cls, item: Item, limit: int) -> "Start":
        """Draw the engine's own numbers for this seed; greedy texts need none."""
        if item.temperature == 0:
            return cls(item, np.zeros(limit))
        return cls(item, Uniforms(item.seed).at(DECIDE, len(item.prompt.tokens), limit))


class Slots:
    """State of ``size`` texts of at most ``limit`` tokens.

    Attributes:
        tokens_B1: last token of each text; its successor is chosen next.
        lengths_B: tokens whose keys and values are in the cache.
        live_B: whether the slot holds a text that goes on.
        written_B: tokens of the response so far.
        temperature_B: of each text.
    """

    def __init__(self, size: int, limit: int, stop_ids: frozenset[int], vocab_size: int, device: torch.device) -> None:
        self.size, self.limit, self._device = size, limit, device
        self.tokens_B1 = torch.zeros(size, 1, dtype=torch.int64, device=device)
        self.lengths_B = torch.zeros(size, dtype=torch.int64, device=device)
        self.written_B = torch.zeros(size, dtype=torch.int64, device=device)
        self.live_B = torch.zeros(size, dtype=torch.bool, device=device)
        self.temperature_B = torch.zeros(size, dtype=torch.float32, device=device)
        self._uniforms_BT = torch.zeros(size, limit, dtype=torch.float64, device=device)
        # One column more: where rows that are over leave what nobody reads.
        self._text_BT = torch.zeros(size, limit + 1, dtype=torch.int64, device=device)
        self._stops_V = torch.zeros(vocab_size, dtype=torch.bool, device=device)
        self._stop_ids = stop_ids
        self._stops_V[torch.tensor([t for t in stop_ids if t < vocab_size], dtype=torch.int64, device=device)] = True
        self._items: list[Item | None] = [None] * size

    @property
    def free(self) -> list[int]:
        """Slots without an item."""
        return [slot for slot, item in enumerate(self._items) if item is None]

    @property
    def busy(self) -> bool:
        """Whether any slot holds an item."""
        return any(item is not None for item in self._items)

    def begin(self, slots: Sequence[int], starts: Sequence[Start]) -> None:
        """Fill slots; before the next step the cache must hold their prompts but for the last token."""
        index_R = self._on_device(np.array(slots))
        prompts = [start.item.prompt.tokens for start in starts]
        self.tokens_B1[index_R, 0] = self._on_device(np.array([prompt[-1] for prompt in prompts]))
        self.lengths_B[index_R] = self._on_device(np.array([len(prompt) - 1 for prompt in prompts]))
        self.temperature_B[index_R] = self._on_device(
            np.array([start.item.temperature for start in starts], dtype=np.float32)
        )
        self._uniforms_BT[index_R] = self._on_device(np.stack([start.uniforms_T for start in starts]))
        self.written_B[index_R] = 0
        self.live_B[index_R] = True
        for slot, start in zip(slots, starts, strict=True):
            self._items[slot] = start.item

    def uniform_B(self) -> Tensor:  # noqa: N802 -- names a tensor by its shape
        """The number that decides each text's next token."""
        return self._uniforms_BT.gather(1, self.written_B.clamp(max=self.limit - 1)[:, None])[:, 0]

    def take(self, chosen_B: Tensor) -> None:
        """Add a token to every text that goes on."""
        live_B1 = self.live_B[:, None]
        column_B1 = self.written_B[:, None].masked_fill(~live_B1, self.limit)
        self._text_BT.scatter_(1, column_B1, chosen_B[:, None])
        self.tokens_B1.copy_(torch.where(live_B1, chosen_B[:, None], self.tokens_B1))
        self.lengths_B.add_(self.live_B)
        self.written_B.add_(self.live_B)
        over_B = self._stops_V[chosen_B] | (self.written_B >= self.limit)
        self.live_B.logical_and_(~over_B)

    def collect(self) -> list[Text]:
        """Take out the texts that are over; here the host waits for the device."""
        live, written = torch.stack((self.live_B.long(), self.written_B)).cpu().numpy()
        over = [slot for slot, item in enumerate(self._items) if item is not None and not live[slot]]
        if not over:
            return []
        longest = int(written[over].max())
        rows = self._text_BT[self._on_device(np.array(over)), :longest].cpu().numpy().astype(np.int32)
        texts = []
        for row, slot in zip(rows, over, strict=True):
            item, self._items[slot] = self._items[slot], None
            assert item is not None  # noqa: S101 -- our own invariant
            tokens = row[: written[slot]]
            texts.append(Text(item, tokens, int(tokens[-1]) in self._stop_ids))
        return texts

    def longest(self) -> int:
        """Return the most tokens that any slot's cache holds; the host waits for the device."""
        return int(self.lengths_B.max())

    def _on_device(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self._device)
