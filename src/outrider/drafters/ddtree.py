"""DDTree: the most probable tree from one DFlash pass, verified at once.

One pass over a block gives each slot's words; their likeliest paths make a tree. With a head that corrects by path
(DFlash2, DSpark) each path is scored by its own words, otherwise slots are independent. Nodes are a deterministic
choice, so the walk is lossless at any temperature. Source: DDTree (Ringel & Romano, arXiv 2604.12989).
Shape letters: B batch rows, K slots that predict.
"""

import torch
from torch import Tensor

from outrider.drafters.block_drafter import BlockDrafter
from outrider.drafters.budget import how_many_pay, mean_reach
from outrider.drafters.options import DraftOptions
from outrider.drafters.rounds import BlockRounds
from outrider.drafters.setting import Setting
from outrider.drafters.trees.belief import Belief
from outrider.drafters.trees.candidates import AfterPath, Candidates
from outrider.drafters.trees.frontier import grow
from outrider.drafters.trees.heap import best_first
from outrider.drafters.trees.nodes import Nodes
from outrider.engine.costs import WIDTHS, Costs
from outrider.engine.interfaces import Slot
from outrider.engine.tree import Proposal
from outrider.models.dflash.heads import Correction
from outrider.models.dflash.network import DFlash, Draft

ON_DEVICE = 63  # nodes on the device, where nothing adapts: with the root one tile of tensor cores
WORDS = 16  # of a slot that may become nodes, where the drafter does not say


class DDTreeDrafter(BlockDrafter[Nodes]):
    """Proposes trees of a fixed number of nodes, or of as many as pay."""

    name = "ddtree"
    draws = False

    def __init__(self, network: DFlash, setting: Setting) -> None:
        budget = setting.options.budget
        super().__init__(network, setting)
        self.max_nodes = WIDTHS[-1] - 1 if budget == "auto" else budget
        self._belief = Belief()

    @staticmethod
    def _adapts(options: DraftOptions) -> bool:
        return options.budget == "auto"

    def device_form(self, rows: slice) -> BlockRounds | None:
        """Trees of a fixed number of nodes on the device; none for trees that put the chain of best words first."""
        if self._options.spine:
            return None
        nodes = ON_DEVICE if self._adaptive else self.max_nodes
        return BlockRounds(self._blocks, rows, width=1 + nodes, tokens=self._depth)

    def _propose(self, slots: list[Slot | None], draft: Draft, costs: Costs) -> list[Proposal]:
        trees = self._build(slots, draft)
        self._made = {slot.slot: nodes for slot, nodes in zip(slots, trees, strict=True) if slot is not None}
        reaches = [self._belief.reach(nodes) for nodes in trees]
        count = self.max_nodes
        if self._adaptive:
            running = [reach for reach, slot in zip(reaches, slots, strict=True) if slot is not None]
            count = how_many_pay(mean_reach(running), costs, len(slots), least=1)
        return [
            Proposal(tuple(nodes.tokens[:count]), tuple(nodes.parents[:count]), reach=tuple(reach[:count]))
            for nodes, reach in zip(trees, reaches, strict=True)
        ]

    def _build(self, slots: list[Slot | None], draft: Draft) -> list[Nodes]:
        """One tree a row, as large as allowed; the empty tree where there is no slot or no room."""
        network = self._network
        limits = [0 if slot is None else min(slot.max_depth, self._depth) for slot in slots]
        depth = max(limits)
        count = WORDS if network.correction is None else network.correction.candidates or WORDS
        found = Candidates.of(draft.logits_BKV[:, :depth], count, network.words)
        if network.correction is None:
            rows = zip(found.tokens_BLK.tolist(), found.log_probs_BLK.tolist(), limits, strict=True)
            return [
                best_first(tokens[:limit], log_probs[:limit], self.max_nodes, spine=self._options.spine)
                for tokens, log_probs, limit in rows
            ]
        return self._build_by_path(network.correction, draft.hidden_BKH, found, slots, limits)

    def _build_by_path(
        self,
        correction: Correction,
        hidden_BKH: Tensor,
        found: Candidates,
        slots: list[Slot | None],
        limits: list[int],
    ) -> list[Nodes]:
        device = hidden_BKH.device
        anchors_B = torch.tensor([0 if slot is None else slot.anchor for slot in slots], device=device)
        grown = grow(
            AfterPath(correction, hidden_BKH, found),
            anchors_B,
            depth=max(limits),
            budget=self.max_nodes,
            limits_B=torch.tensor(limits, device=device),
            spine=self._options.spine,
        )
        return grown.on_host()

    def _learn(self, made: Nodes, tokens: tuple[int, ...]) -> None:
        self._belief.learn(made, tokens)
