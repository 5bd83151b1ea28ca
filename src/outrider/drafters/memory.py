"""What drafters that remember committed positions have in common: how many of each slot, and what a pass brought.

Shape letters: B batch rows, N nodes, P kept rows, X features.
"""

import torch
from torch import Tensor

from outrider.engine.interfaces import Committed


class SlotLengths:
    """How many positions each slot remembers.

    Args:
        slots: as many as the engine has.
        device: where batches are run.
    """

    def __init__(self, slots: int, device: torch.device) -> None:
        self._lengths, self._device = [0] * slots, device

    def __getitem__(self, rows: slice) -> list[int]:
        """Return those of a batch."""
        return self._lengths[rows]

    def forget(self, slot: int) -> None:
        """Forget what the slot held."""
        self._lengths[slot] = 0

    def start(self, slot: int, count: int) -> None:
        """The slot begins with so many positions of another."""
        self._lengths[slot] = count

    def add(self, rows: slice, kept: list[int]) -> None:
        """Count what a batch took in."""
        for index, count in enumerate(kept):
            self._lengths[rows.start + index] += count

    def of(self, slots: tuple[int, ...]) -> tuple[slice, Tensor]:
        """The contiguous slots of a batch (-1 marks rows to pass over) and what each remembers."""
        index = next(index for index, slot in enumerate(slots) if slot >= 0)
        first = slots[index] - index
        rows = slice(first, first + len(slots))
        return rows, torch.tensor(self._lengths[rows], device=self._device)


def kept_of(committed: Committed) -> list[int]:
    """How many positions each row brought: those of a chunk of a prompt, or of the walked path of a round."""
    return [
        0 if slot < 0 else len(tokens) or committed.tree.width
        for slot, tokens in zip(committed.slots, committed.tokens, strict=True)
    ]


def along_path(committed: Committed, states_BNX: Tensor, most: int) -> Tensor:
    """States of the first ``most`` nodes of each row's path, [B, P, X]; beyond its end they mean nothing."""
    if committed.tree.is_chain:
        return states_BNX[:, :most]
    path_BP1 = committed.walk.path_BN[:, :most, None]
    return states_BNX.gather(1, path_BP1.expand(-1, -1, states_BNX.shape[-1]))
