"""MTP trees: the best words after each path, and the heads run again on all kept paths of a depth at once.

Other than the slots of a block, each path is scored by what stands on it. Nodes are a deterministic choice, so the walk
is lossless at any temperature.
Shape letters: B batch rows, W paths of a depth, K words, M places of guesses, H hidden.
"""

import torch
from torch import Tensor

from outrider.drafters.heads import Heads, Thought
from outrider.drafters.network_drafter import NetworkDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.drafters.trees.belief import Belief
from outrider.drafters.trees.frontier import grow
from outrider.drafters.trees.nodes import Nodes
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Slot
from outrider.engine.tree import Proposal
from outrider.engine.words import best_words
from outrider.models.mtp import MTP

WORDS = 8  # after each path that may become nodes
DEEPEST = 4  # where the options do not say: each depth is a pass of the heads over all paths kept


class MTPTreeDrafter(NetworkDrafter[Nodes, Thought]):
    """Proposes trees of a fixed number of nodes.

    Args:
        network: the heads on their target.
        setting: slots, lengths, options; among them the number of nodes.
    """

    name = "mtp"
    taps: tuple[int, ...] = ()
    draws = False

    def __init__(self, network: MTP, setting: Setting) -> None:
        assert setting.options.budget != "auto"  # noqa: S101 -- else it is a drafter of chains
        self.max_nodes, self._depth = setting.options.budget, setting.options.tokens or DEEPEST
        self._places = self.max_nodes * self._depth
        super().__init__(Heads(network, setting, self._places), setting.options)
        self._belief = Belief()

    @staticmethod
    def _adapts(options: DraftOptions) -> bool:  # noqa: ARG004 -- the number of nodes is fixed
        return False

    def _propose(self, slots: list[Slot | None], draft: Thought, costs: Costs) -> list[Proposal]:  # noqa: ARG002
        device = draft.hidden_BH.device
        limits = [min(limit, self._depth) for limit in draft.limits]
        trees = grow(
            AlongPaths(draft, self._places),
            torch.tensor([0 if slot is None else slot.anchor for slot in slots], device=device),
            depth=max(limits),
            budget=self.max_nodes,
            limits_B=torch.tensor(limits, device=device),
            spine=self._options.spine,
        ).on_host()
        self._made = {slot.slot: nodes for slot, nodes in zip(slots, trees, strict=True) if slot and len(nodes)}
        return [
            Proposal(tuple(nodes.tokens), tuple(nodes.parents), reach=tuple(self._belief.reach(nodes)))
            for nodes in trees
        ]

    def _learn(self, made: Nodes, tokens: tuple[int, ...]) -> None:
        self._belief.learn(made, tokens)


class AlongPaths:
    """Scores words by the heads, run along every path (see ``trees.frontier.Scores``).

    The state of a path is what the heads say at its end, and behind that which places it goes through.

    Args:
        draft: where the rows stand.
        places: M, for the guesses of all depths.
    """

    def __init__(self, draft: Thought, places: int) -> None:
        self._draft, self._places, self._first = draft, places, 0

    def start(self) -> Tensor:
        """State of the roots, which stand in no place."""
        hidden_BH = self._draft.hidden_BH
        return torch.cat((hidden_BH, hidden_BH.new_zeros(len(hidden_BH), self._places)), 1)[:, None]

    def at(self, slot: int, previous_BW: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score what follows each path."""
        hidden_BWH, through_BWM = state.split_with_sizes((state.shape[2] - self._places, self._places), 2)
        if slot:
            first, paths = self._first, previous_BW.shape[1]
            own_WM = torch.eye(self._places, dtype=state.dtype, device=state.device)[first : first + paths]
            through_BWM = through_BWM + own_WM
            sees_BWM = through_BWM[:, :, : first + paths] > 0
            hidden_BWH = self._draft.network.guess(
                previous_BW, hidden_BWH, self._draft.past, sees_BWM, depth=slot - 1, first=first
            )
            self._first += paths
        logits_BWV = self._draft.logits(hidden_BWH)
        values_BWK, words_BWK = best_words(logits_BWV, WORDS)
        log_probs_BWK = values_BWK - logits_BWV.logsumexp(-1, keepdim=True)
        return words_BWK, log_probs_BWK, torch.cat((hidden_BWH, through_BWM), 2)
