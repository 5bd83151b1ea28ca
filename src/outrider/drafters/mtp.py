"""MTP: the multi-token prediction heads that come with a target, as chains.

The first guess needs no pass of its own: what scores it was made when the last positions were taken in. Each further
one runs the heads again on their own output. As many are made as the options say, or as paid so far. With a budget of
nodes it is a tree (``mtp_tree``).
Shape letters: B batch rows, K guesses, V words, H hidden.
"""

import numpy as np
import torch
from torch import Tensor

from outrider.drafters.budget import how_many_pay
from outrider.drafters.chains import Chain
from outrider.drafters.depths import Depths
from outrider.drafters.heads import Heads, Thought
from outrider.drafters.mtp_tree import MTPTreeDrafter
from outrider.drafters.network_drafter import NetworkDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.rounds import MTPRounds
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Slot
from outrider.engine.rules import draw
from outrider.engine.tree import Proposal
from outrider.engine.uniforms import DRAFT
from outrider.engine.words import best_word
from outrider.models.mtp import MTP

ON_DEVICE = 3  # guesses on the device, where nothing adapts
MOST = 6  # guesses one after the other, where the options do not say; published acceptance falls below a third there


class MTPDrafter(NetworkDrafter[Chain, Thought]):
    """Proposes chains; drawn from the heads' own law at temperatures above 0, unless the options say otherwise.

    Args:
        network: the heads on their target.
        setting: slots, lengths, options.
    """

    name = "mtp"
    taps: tuple[int, ...] = ()

    def __init__(self, network: MTP, setting: Setting) -> None:
        self.max_nodes = setting.options.tokens or MOST
        super().__init__(Heads(network, setting, self.max_nodes), setting.options)
        self.draws = setting.options.sampled
        self._depths = Depths(self.max_nodes)

    @classmethod
    def build(cls, setting: Setting) -> "MTPDrafter | MTPTreeDrafter":
        """Build it over the heads of the target; with a budget of nodes, the drafter of trees.

        Raises:
            OutriderError: the target has no heads, or not all of them.
        """
        network = setting.needed_heads(cls.name)
        return cls(network, setting) if setting.options.budget == "auto" else MTPTreeDrafter(network, setting)

    @staticmethod
    def _adapts(options: DraftOptions) -> bool:
        return options.tokens is None

    def device_form(self, rows: slice) -> MTPRounds:
        """Chains of a fixed number of guesses on the device."""
        assert isinstance(self._memory, Heads)  # noqa: S101 -- made here
        return MTPRounds(self._memory, rows, self._options.tokens or ON_DEVICE)

    def _propose(self, slots: list[Slot | None], draft: Thought, costs: Costs) -> list[Proposal]:
        # What pays follows from earlier rounds alone: a count that depended on draws of this one would not be lossless.
        reach = self._depths.reach()
        count = how_many_pay(reach, costs, len(slots), least=1) if self._adaptive else self.max_nodes
        chains = guess_chains(draft, slots, min(count, max(draft.limits)), sampled=self._options.sampled)
        self._made = {slot.slot: chain for slot, chain in zip(slots, chains, strict=True) if slot and chain.tokens}
        return [Proposal.chain(chain.tokens, chain.laws_KV, tuple(reach[: len(chain.tokens)])) for chain in chains]

    def _learn(self, made: Chain, tokens: tuple[int, ...]) -> None:
        self._depths.learn(made.tokens, tokens)


def guess_chains(draft: Thought, slots: list[Slot | None], count: int, *, sampled: bool) -> list[Chain]:
    """Make one chain a row, of ``count`` guesses or as many as there is room for.

    Args:
        draft: where the rows stand.
        slots: the rows; a chain of one that does not count is empty.
        count: at most so many guesses.
        sampled: draw the guesses of rows whose rules draw; otherwise take the best words.
    """
    drawing = {
        row: slot
        for row, slot in enumerate(slots)
        if slot is not None and draft.limits[row] and sampled and not slot.rules.params.greedy
    }
    uniforms = {row: slot.rules.uniforms.at(DRAFT, slot.position, count) for row, slot in drawing.items()}
    hidden_B1H, tokens = draft.hidden_BH[:, None], []
    laws: dict[int, list[Tensor]] = {row: [] for row in drawing}
    for depth in range(count):
        logits_BV = draft.logits(hidden_B1H)[:, 0]
        tokens_B = best_word(logits_BV)
        for row, slot in drawing.items():
            law_1V = slot.rules.probabilities(logits_BV[row : row + 1])
            laws[row].append(law_1V)
            tokens_B[row] = _draw(law_1V, uniforms[row][depth])
        tokens.append(tokens_B)
        if depth + 1 < count:
            sees_B1M = torch.ones(len(slots), 1, depth + 1, dtype=torch.bool, device=tokens_B.device)
            hidden_B1H = draft.network.guess(
                tokens_B[:, None], hidden_B1H, draft.past, sees_B1M, depth=depth, first=depth
            )
    made = torch.stack(tokens, 1).tolist()
    return [
        _chain(row[:limit], laws.get(index)) for index, (row, limit) in enumerate(zip(made, draft.limits, strict=True))
    ]


def _draw(law_1V: Tensor, uniform: float) -> Tensor:
    return draw(law_1V, torch.from_numpy(np.array([uniform])).to(law_1V.device))[0]


def _chain(tokens: list[int], laws: list[Tensor] | None) -> Chain:
    return Chain(tokens, laws_KV=torch.cat(laws[: len(tokens)]) if laws and tokens else None)
