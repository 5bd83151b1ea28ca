"""What chain and tree drafters share: a draft network with what it remembers of each slot.

Remembers the features of every committed token and runs one pass over the blocks of a batch. Knows nothing of how
the guesses are used.
Shape letters: B batch rows, P kept rows, F features.
"""

import torch

from outrider.drafters.memory import SlotLengths, along_path, kept_of
from outrider.drafters.setting import Setting
from outrider.engine.interfaces import Committed, Slot
from outrider.models.dflash.network import DFlash, Draft


class Blocks:
    """A draft network over as many slots as the engine has.

    Args:
        network: the draft model on its target.
        setting: slots and lengths.

    Attributes:
        network: as given.
        cache: context keys of each slot.
        lengths: tokens remembered.
    """

    def __init__(self, network: DFlash, setting: Setting) -> None:
        self.network = network
        # A round of which the host knows late brings as many tokens as a block has behind a text's end.
        self.cache = network.new_cache(slots=setting.slots, max_len=setting.max_len + network.config.block_size)
        self.lengths = SlotLengths(setting.slots, network.device)

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:  # noqa: ARG002 -- it reads features, not tokens
        """A sequence starts in the slot."""
        self.forget(slot)

    def forget(self, slot: int) -> None:
        """Forget what the slot held."""
        self.lengths.forget(slot)

    def share(self, source: int, slot: int, count: int) -> bool:
        """Take over the context of the first tokens of another slot."""
        self.cache.share(source, slot, count)
        self.lengths.start(slot, count)
        return True

    def observe(self, committed: Committed) -> None:
        """Remember the features of what was committed: a chunk of a prompt, or the walked path of a round."""
        kept = kept_of(committed)
        most = max(kept)
        if most == 0:
            return
        rows, lengths_B = self.lengths.of(committed.slots)
        # A row that kept fewer, or none, gets rows behind its own end, which its next tokens overwrite.
        taps = [committed.out.taps[tap] for tap in self.network.config.taps]
        features_BPF = torch.cat([along_path(committed, tap_BNH, most) for tap_BNH in taps], -1)
        span = max(self.lengths[rows]) + most
        self.network.remember(features_BPF, self.cache, rows, lengths_B, span=span)
        self.lengths.add(rows, kept)

    def draft(self, slots: list[Slot | None]) -> Draft | None:
        """Run one block a slot; None where no slot has room for a guess."""
        if not any(slot is not None and slot.max_depth for slot in slots):
            return None
        rows, lengths_B = self.lengths.of(tuple(-1 if slot is None else slot.slot for slot in slots))
        anchors_B = torch.tensor([0 if slot is None else slot.anchor for slot in slots], device=self.network.device)
        span = max(self.lengths[rows]) + self.network.config.block_size
        shortest = min(self.lengths[rows])
        return self.network.draft(anchors_B, self.cache, rows, lengths_B, span=span, shortest=shortest)
