"""Multi-token prediction heads with what they remember of each slot.

Every committed position is taken in once, with the target's own state; what the heads say after the last one is kept,
for it scores the first guess. Knows nothing of how guesses are used.
Shape letters: B batch rows, N guesses, P kept rows, H hidden, V words, M places of guesses.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from outrider.drafters.memory import SlotLengths, along_path, kept_of
from outrider.drafters.setting import Setting
from outrider.engine.interfaces import Committed, Slot
from outrider.models.mtp import MTP, Past


@dataclass(frozen=True, slots=True)
class Thought:
    """Where a batch of slots stands, for guesses one after the other.

    Attributes:
        network: the heads.
        past: what each row has taken in.
        hidden_BH: what the heads say after the last position of each row.
        limits: guesses that each row has room for, one after the other; 0 for a row that does not count.
    """

    network: MTP
    past: Past
    hidden_BH: Tensor
    limits: list[int]

    def logits(self, hidden_BNH: Tensor) -> Tensor:
        """Score what follows, [B, N, V]."""
        return self.network.target.logits(hidden_BNH)


class Heads:
    """Heads over as many slots as the engine has.

    Args:
        network: the heads on their target.
        setting: slots and lengths.
        places: guesses of a slot that are run in a round.

    Attributes:
        network: as given.
        cache: keys and values of the heads.
        lengths: positions taken in.
        last_SH: what the heads said after the last position of each slot.
    """

    def __init__(self, network: MTP, setting: Setting, places: int) -> None:
        self.network, device = network, network.target.device
        self.cache = network.new_cache(
            slots=setting.slots, max_len=setting.max_len + 2 * (1 + places)
        )  # the host may be a round late
        self.lengths = SlotLengths(setting.slots, device)
        self._prompts: dict[int, tuple[int, ...]] = {}
        hidden = network.target.config.hidden_size
        self.last_SH = torch.zeros(setting.slots, hidden, dtype=network.target.activations, device=device)

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        """A sequence starts in the slot."""
        self.lengths.forget(slot)
        self._prompts[slot] = prompt

    def forget(self, slot: int) -> None:
        """Forget what the slot held."""
        self.lengths.forget(slot)
        self._prompts.pop(slot, None)

    def share(self, source: int, slot: int, count: int) -> bool:  # noqa: ARG002 -- the interface
        """Not possible: what the heads said at the last position is kept of no other."""
        return False

    def observe(self, committed: Committed) -> None:
        """Take in what was committed: a chunk of a prompt, or the walked path of a round."""
        kept = kept_of(committed)
        most = max(kept)
        if most == 0:
            return
        rows, lengths_B = self.lengths.of(committed.slots)
        # A row that kept fewer, or none, gets rows behind its own end, which its next positions overwrite.
        hidden_BPH = along_path(committed, committed.out.hidden_BNH, most)
        past = Past(self.cache, rows, lengths_B, max(self.lengths[rows]))
        said_BPH = self.network.read(self._tokens(committed, kept, most), hidden_BPH, past)
        kept_B = torch.tensor(kept, device=lengths_B.device)
        last_BH = said_BPH[torch.arange(len(kept), device=lengths_B.device), (kept_B - 1).clamp(min=0)]
        self.last_SH[rows] = torch.where(kept_B[:, None] > 0, last_BH, self.last_SH[rows])
        self.lengths.add(rows, kept)

    def _tokens(self, committed: Committed, kept: list[int], most: int) -> Tensor:
        """The token after each kept position, [B, P]; anything behind the last one of a row."""
        tokens_BP = []
        for slot, decided, count in zip(committed.slots, committed.tokens, kept, strict=True):
            after = decided
            if count and not decided:  # a chunk of the prompt, of which one token more is known
                (start,) = self.lengths[slot : slot + 1]
                after = self._prompts[slot][start + 1 : start + 1 + count]
            tokens_BP.append([*after, *[0] * (most - len(after))])
        return torch.tensor(tokens_BP, device=self.network.target.device)

    def draft(self, slots: list[Slot | None]) -> Thought | None:
        """Begin to guess; None where no slot has room for a guess, or has taken a position in."""
        limits = [0 if slot is None else slot.max_depth for slot in slots]
        if not any(limits):
            return None
        rows, lengths_B = self.lengths.of(tuple(-1 if slot is None else slot.slot for slot in slots))
        lengths = self.lengths[rows]
        limits = [limit if length else 0 for limit, length in zip(limits, lengths, strict=True)]
        if not any(limits):
            return None
        return Thought(self.network, Past(self.cache, rows, lengths_B, max(lengths)), self.last_SH[rows], limits)
