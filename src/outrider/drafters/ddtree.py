"""DDTree: the most probable tree from one DFlash pass, verified at once.

One pass over a block gives each slot's words; their likeliest paths make a tree. With a head that corrects by path
(DFlash2, DSpark) each path is scored by its own words, otherwise slots are independent. Nodes are a deterministic
choice, so the walk is lossless at any temperature. Source: DDTree (Ringel & Romano, arXiv 2604.12989).
Shape letters: B batch rows, K slots that predict.
"""

from typing import Self

import torch
from torch import Tensor

from outrider.drafters.blocks import Blocks
from outrider.drafters.budget import how_many_pay, mean_reach
from outrider.drafters.pause import Pause
from outrider.drafters.setting import Setting
from outrider.drafters.trees.belief import Belief
from outrider.drafters.trees.candidates import AfterPath, Candidates
from outrider.drafters.trees.frontier import grow
from outrider.drafters.trees.heap import best_first
from outrider.drafters.trees.nodes import Nodes
from outrider.engine.costs import WIDTHS, Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.tree import Proposal
from outrider.errors import UsageError
from outrider.models.dflash.heads import Correction
from outrider.models.dflash.network import DFlash, Draft

WORDS = 16  # of a slot that may become nodes, where the drafter does not say


class DDTreeDrafter:
    """Proposes trees of a fixed number of nodes, or of as many as pay.

    Args:
        network: the draft model on its target.
        setting: slots, lengths, options.
    """

    name = "ddtree"
    draws = False

    def __init__(self, network: DFlash, setting: Setting) -> None:
        self._blocks, self._network, self._spine = Blocks(network, setting), network, setting.options.spine
        budget = setting.options.budget
        self._adaptive = budget == "auto"
        self.max_nodes = WIDTHS[-1] - 1 if budget == "auto" else budget
        self._depth = setting.options.tokens or network.config.max_tokens
        self.taps = network.config.taps
        self._belief, self._pause = Belief(), Pause()
        self._built: dict[int, Nodes] = {}
        self._costs = Costs(learn=False)

    @classmethod
    def build(cls, setting: Setting) -> Self:
        """Build it over the draft model of the setting.

        Raises:
            UsageError: there is none, or deeper trees are wanted than a block gives.
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
        self._built.pop(slot, None)

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:
        """Propose a tree a slot."""
        self._costs = costs
        if self._adaptive and self._pause.resting(costs, len(slots)):
            return [Proposal() for _ in slots]
        draft = self._blocks.draft(slots)
        if draft is None:
            return [Proposal() for _ in slots]
        trees = self._build(slots, draft)
        self._built = {slot.slot: nodes for slot, nodes in zip(slots, trees, strict=True) if slot is not None}
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
                best_first(tokens[:limit], log_probs[:limit], self.max_nodes, spine=self._spine)
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
            spine=self._spine,
        )
        return grown.on_host()

    def observe(self, committed: Committed) -> None:
        """Remember the features of what was committed, and learn from the nodes that were tested."""
        self._blocks.observe(committed)
        if self._built:
            brought = sum(map(len, committed.tokens))
            self._pause.learn(brought, committed.tree.width, len(committed.slots), self._costs)
        for slot, tokens in zip(committed.slots, committed.tokens, strict=True):
            if slot in self._built:
                self._belief.learn(self._built[slot], tokens)
        self._built.clear()

    def end(self, slot: int) -> None:
        """Forget the sequence."""
        self._built.pop(slot, None)
