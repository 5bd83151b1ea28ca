"""DFlash chains: one pass over a block of masks, verified as a chain.

Either a fixed number of tokens is proposed, or as many as pay: the drafter's own probabilities, corrected by how
often such guesses were right, against what passes cost. Where drafting itself does not pay it pauses, and tries again.
"""

from itertools import accumulate
from operator import mul
from typing import Self

import torch

from outrider.drafters.blocks import Blocks
from outrider.drafters.budget import how_many_pay
from outrider.drafters.calibration import Calibration
from outrider.drafters.chains import Chain, chains
from outrider.drafters.pause import Pause
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.tree import Proposal
from outrider.errors import UsageError
from outrider.models.dflash.network import DFlash


class DFlashDrafter:
    """Proposes chains; drawn from its own law at temperatures above 0, unless the options say otherwise."""

    name = "dflash"

    def __init__(self, network: DFlash, setting: Setting) -> None:
        self._blocks, self._options = Blocks(network, setting), setting.options
        self.max_nodes = network.config.max_tokens
        self.taps = network.config.taps
        self.draws = setting.options.sampled
        self._calibration, self._pause = Calibration(), Pause()
        self._guessed: dict[int, Chain] = {}
        self._costs = Costs(learn=False)

    @classmethod
    def build(cls, setting: Setting) -> Self:
        """Build it over the draft model of the setting.

        Raises:
            UsageError: there is none, or more draft tokens are wanted than a block gives.
        """
        network = setting.needed_network(cls.name)
        most, wanted = network.config.max_tokens, setting.options.tokens
        if wanted is not None and wanted > most:
            raise UsageError(
                f"Draft tokens: {wanted} wanted, but a block of {network.config.block_size} gives at most {most}."
            )
        return cls(network, setting)

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:  # noqa: ARG002 -- it reads features, not tokens
        """Forget what the slot held."""
        self._blocks.begin(slot)
        self._guessed.pop(slot, None)

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:
        """Propose a chain a slot."""
        self._costs = costs
        adaptive = self._options.tokens is None
        if adaptive and self._pause.resting(costs, len(slots)):
            return [Proposal() for _ in slots]
        draft = self._blocks.draft(slots)
        if draft is None:
            return [Proposal() for _ in slots]
        depth = min(self._options.tokens or self.max_nodes, max(slot.max_depth for slot in slots if slot))
        made = chains(self._blocks.network, draft, slots, depth=depth, sampled=self._options.sampled)
        return [self._propose(slot, chain, costs, len(slots)) for slot, chain in zip(slots, made, strict=True)]

    def _propose(self, slot: Slot | None, chain: Chain, costs: Costs, rows: int) -> Proposal:
        if slot is None or not slot.max_depth:
            return Proposal()
        self._guessed[slot.slot] = chain
        reach = list(accumulate(map(self._calibration.of, chain.chances[: slot.max_depth]), mul))
        count = len(reach) if self._options.tokens is not None else how_many_pay(reach, costs, rows, least=1)
        laws_KV = torch.stack(chain.laws[:count]) if chain.laws else None
        return Proposal.chain(chain.tokens[:count], laws_KV, tuple(reach[:count]))

    def observe(self, committed: Committed) -> None:
        """Remember the features of what was committed, and learn how good the guesses were."""
        self._blocks.observe(committed)
        if self._guessed:
            brought = sum(map(len, committed.tokens))
            self._pause.learn(brought, committed.tree.width, len(committed.slots), self._costs)
        for slot, tokens in zip(committed.slots, committed.tokens, strict=True):
            if slot in self._guessed:
                self._learn(self._guessed[slot], tokens)
        self._guessed.clear()

    def _learn(self, chain: Chain, tokens: tuple[int, ...]) -> None:
        """Compare guesses with what was decided, up to the first wrong one, whether they were proposed or not."""
        for guess, chance, token in zip(chain.tokens, chain.chances, tokens, strict=False):
            self._calibration.learn(chance, right=guess == token)
            if guess != token:
                return

    def end(self, slot: int) -> None:
        """Forget the sequence."""
        self._guessed.pop(slot, None)
