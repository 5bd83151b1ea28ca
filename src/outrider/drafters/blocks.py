"""What chain and tree drafters share: a draft network with what it remembers of each slot.

Remembers the features of every committed token and runs one pass over the blocks of a batch. Knows nothing of how
the guesses are used.
Shape letters: B batch rows, N nodes, P kept rows, F features.
"""

import torch
from torch import Tensor

from outrider.drafters.setting import Setting
from outrider.engine.interfaces import Committed, Slot
from outrider.models.dflash.network import DFlash, Draft


class Blocks:
    """A draft network over as many slots as the engine has.

    Args:
        network: the draft model on its target.
        setting: slots and lengths.
    """

    def __init__(self, network: DFlash, setting: Setting) -> None:
        self.network = network
        self._cache = network.new_cache(slots=setting.slots, max_len=setting.max_len)
        self._lengths = [0] * setting.slots

    def forget(self, slot: int) -> None:
        """Forget what the slot held."""
        self._lengths[slot] = 0

    def observe(self, committed: Committed) -> None:
        """Remember the features of what was committed: a chunk of a prompt, or the walked path of a round."""
        kept = [
            0 if slot < 0 else len(tokens) or committed.tree.width
            for slot, tokens in zip(committed.slots, committed.tokens, strict=True)
        ]
        most = max(kept)
        if most == 0:
            return
        rows, lengths_B = self._rows(committed.slots)
        # A row that kept fewer, or none, gets rows behind its own end, which its next tokens overwrite.
        features_BPF = self._features(committed, most)
        span = max(self._lengths[rows]) + most
        self.network.remember(features_BPF, self._cache, rows, lengths_B, span=span)
        for index, count in enumerate(kept):
            self._lengths[rows.start + index] += count

    def _rows(self, slots: tuple[int, ...]) -> tuple[slice, Tensor]:
        """The contiguous slots of a batch (-1 marks rows to pass over) and what each remembers."""
        index = next(index for index, slot in enumerate(slots) if slot >= 0)
        first = slots[index] - index
        rows = slice(first, first + len(slots))
        return rows, torch.tensor(self._lengths[rows], device=self.network.device)

    def _features(self, committed: Committed, most: int) -> Tensor:
        taps = [committed.out.taps[tap] for tap in self.network.config.taps]
        if committed.tree.is_chain:
            return torch.cat([tap_BNH[:, :most] for tap_BNH in taps], -1)
        path_BP1 = committed.walk.path_BN[:, :most, None]
        return torch.cat([tap_BNH.gather(1, path_BP1.expand(-1, -1, tap_BNH.shape[-1])) for tap_BNH in taps], -1)

    def draft(self, slots: list[Slot | None]) -> Draft | None:
        """Run one block a slot; None where no slot has room for a guess."""
        if not any(slot is not None and slot.max_depth for slot in slots):
            return None
        rows, lengths_B = self._rows(tuple(-1 if slot is None else slot.slot for slot in slots))
        anchors_B = torch.tensor([0 if slot is None else slot.anchor for slot in slots], device=self.network.device)
        span = max(self._lengths[rows]) + self.network.config.block_size
        shortest = min(self._lengths[rows])
        return self.network.draft(anchors_B, self._cache, rows, lengths_B, span=span, shortest=shortest)
