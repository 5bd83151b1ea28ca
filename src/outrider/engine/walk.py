"""Walks through a draft tree: which path the target's own decisions follow.

Shape letters: B batch rows, N nodes, V vocabulary. Nothing here asks the device a question.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from outrider.engine.tree import DraftTree


@dataclass(frozen=True, slots=True)
class Walk:
    """The accepted path of each row, and the target's own token after it.

    Attributes:
        path_BN: node indices from the root down; entries beyond ``accepted + 1`` mean nothing.
        accepted_B: a, draft tokens kept; the bonus token is not counted.
        bonus_B: the token the target decided after the path: the next anchor.
    """

    path_BN: Tensor
    accepted_B: Tensor
    bonus_B: Tensor


def follow(tree: DraftTree, decisions_BN: Tensor) -> Walk:
    """Follow the child that equals the decision at each node, until there is none.

    Args:
        tree: siblings carry distinct tokens.
        decisions_BN: the target's token after each node: its argmax, or one draw from its law there.

    With a draw a node the emitted tokens follow the target's law whatever the tree (SpecInfer's naive
    sampling; DDTree): the draws do not depend on the tree, and only those on the path are used.
    """
    if tree.width == 1:
        nothing_B1 = torch.zeros_like(decisions_BN)
        return Walk(nothing_B1, nothing_B1[:, 0], decisions_BN[:, 0])
    index = torch.arange(tree.width, device=decisions_BN.device)
    wanted_BN = decisions_BN.gather(1, tree.parents_BN)
    match_BN = (tree.tokens_BN == wanted_BN) & (index < tree.counts_B[:, None])
    match_BN[:, 0] = True
    lost_BNN = tree.visible_BNN & ~match_BN[:, None, :]
    accepted_BN = ~lost_BNN.any(-1)
    path_BN = torch.argsort(~accepted_BN, dim=1, stable=True)
    accepted_B = accepted_BN.sum(1) - 1
    last_B1 = path_BN.gather(1, accepted_B[:, None])
    return Walk(path_BN, accepted_B, decisions_BN.gather(1, last_B1)[:, 0])


def whole(tree: DraftTree) -> Walk:
    """The walk that keeps every node of a chain: a chunk of a prompt. Its bonus token means nothing."""
    rows, width = tree.tokens_BN.shape
    path_BN = torch.arange(width, device=tree.tokens_BN.device).expand(rows, width)
    return Walk(path_BN, tree.counts_B - 1, tree.tokens_BN[:, -1])
