"""DFlash chains: one pass over a block of masks, verified as a chain.

Either a fixed number of tokens is proposed, or as many as pay: the drafter's own probabilities, corrected by how
often such guesses were right, against what passes cost. Where drafting itself does not pay it pauses, and tries again.
"""

from itertools import accumulate
from operator import mul

from outrider.drafters.block_drafter import BlockDrafter
from outrider.drafters.budget import how_many_pay, mean_reach
from outrider.drafters.calibration import Calibration
from outrider.drafters.chains import Chain, Chains
from outrider.drafters.options import DraftOptions
from outrider.drafters.rounds import BlockRounds
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

    def device_form(self, rows: slice) -> BlockRounds:
        """Chains of a fixed number of guesses on the device."""
        return BlockRounds(self._blocks, rows, tokens=self._depth)

    def _propose(self, slots: list[Slot | None], draft: Draft, costs: Costs) -> list[Proposal]:
        depth = min(self._depth, max(slot.max_depth for slot in slots if slot))
        chains = Chains(self._network, draft, slots, depth=depth, sampled=self._options.sampled)
        reaches = [
            [] if slot is None else self._reach(chances[: slot.max_depth])
            for slot, chances in zip(slots, chains.chances, strict=True)
        ]
        count = depth
        if self._adaptive:
            # One count for all rows, since all are padded to the widest. Lossless: chances of drawn tokens depend on no
            # draw and the other rows draw nothing, so the count depends on no draw of this round.
            running = [reach for reach, slot in zip(reaches, slots, strict=True) if slot is not None]
            count = how_many_pay(mean_reach(running), costs, len(slots), least=1)
        made = chains.take(min(count + 1, depth))  # one guess more, for the bonus token shows whether it is right
        self._made = {slot.slot: chain for slot, chain in zip(slots, made, strict=True) if slot and slot.max_depth}
        return [_proposal(chain, reach[:count]) for chain, reach in zip(made, reaches, strict=True)]

    def _reach(self, chances: list[float]) -> list[float]:
        """Probability that each guess is reached, by what such chances were worth."""
        return list(accumulate(map(self._calibration.of, chances), mul))

    def _learn(self, made: Chain, tokens: tuple[int, ...]) -> None:
        """Compare guesses with what was decided, up to the first wrong one, whether they were proposed or not."""
        for guess, chance, token in zip(made.tokens, made.chances, tokens, strict=False):
            self._calibration.learn(chance, right=guess == token)
            if guess != token:
                return


def _proposal(chain: Chain, reach: list[float]) -> Proposal:
    """As much of a chain as there are estimates."""
    laws_KV = None if chain.laws_KV is None else chain.laws_KV[: len(reach)]
    return Proposal.chain(chain.tokens[: len(reach)], laws_KV, tuple(reach))
