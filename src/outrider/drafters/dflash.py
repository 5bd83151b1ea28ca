"""DFlash chains: one pass over a block of masks, verified as a chain.

Either a fixed number of tokens is proposed, or as many as pay: the drafter's own probabilities, corrected by how
often such guesses were right, against what passes cost. Where drafting itself does not pay it pauses, and tries again.
"""

from itertools import accumulate
from operator import mul

import torch

from outrider.drafters.block_drafter import BlockDrafter
from outrider.drafters.budget import how_many_pay
from outrider.drafters.calibration import Calibration
from outrider.drafters.chains import Chain, chains
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Slot
from outrider.engine.tree import Proposal
from outrider.models.dflash.network import DFlash, Draft


class DFlashDrafter(BlockDrafter[Chain]):
    """Proposes chains; drawn from its own law at temperatures above 0, unless the options say otherwise."""

    name = "dflash"

    def __init__(self, network: DFlash, setting: Setting) -> None:
        super().__init__(network, setting)
        self.max_nodes = network.config.max_tokens
        self.draws = setting.options.sampled
        self._calibration = Calibration()

    @staticmethod
    def _adapts(options: DraftOptions) -> bool:
        return options.tokens is None

    def _propose(self, slots: list[Slot | None], draft: Draft, costs: Costs) -> list[Proposal]:
        depth = min(self._depth, max(slot.max_depth for slot in slots if slot))
        made = chains(self._network, draft, slots, depth=depth, sampled=self._options.sampled)
        return [self._cut(slot, chain, costs, len(slots)) for slot, chain in zip(slots, made, strict=True)]

    def _cut(self, slot: Slot | None, chain: Chain, costs: Costs, rows: int) -> Proposal:
        """Propose as much of a chain as fits and pays."""
        if slot is None or not slot.max_depth:
            return Proposal()
        self._made[slot.slot] = chain
        reach = list(accumulate(map(self._calibration.of, chain.chances[: slot.max_depth]), mul))
        count = how_many_pay(reach, costs, rows, least=1) if self._adaptive else len(reach)
        laws_KV = torch.stack(chain.laws[:count]) if chain.laws else None
        return Proposal.chain(chain.tokens[:count], laws_KV, tuple(reach[:count]))

    def _learn(self, made: Chain, tokens: tuple[int, ...]) -> None:
        """Compare guesses with what was decided, up to the first wrong one, whether they were proposed or not."""
        for guess, chance, token in zip(made.tokens, made.chances, tokens, strict=False):
            self._calibration.learn(chance, right=guess == token)
            if guess != token:
                return
