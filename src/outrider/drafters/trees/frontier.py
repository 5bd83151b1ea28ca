"""The most probable tree, depth by depth in tensors of fixed shapes: for the device, and for scores that know the path.

Of the paths of one depth only the best can be among the first N of all: as many as there are nodes left, since each
has an ancestor at every depth above. So each depth keeps that many, and all kept are ranked at the end, by the rule
of the package. Nothing here asks the device a question. Idea of the frontier: DominoTree (arXiv 2607.08642).
Shape letters: B batch rows, N nodes (the root not among them), W paths kept of a depth, K words of a slot, M entries
of the ledger.
"""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from outrider.drafters.trees.nodes import Nodes


class Scores(Protocol):
    """Log-probabilities of the words of each slot, which may depend on the path before them."""

    def start(self) -> Tensor:
        """State of the path that is the root alone, [B, 1, ...]."""
        ...

    def at(self, slot: int, previous_BW: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score a slot after each path.

        Args:
            slot: 0 for the successors of the root.
            previous_BW: last token of each path.
            state: of each path.

        Returns:
            Tokens [B, W, K], their log-probabilities [B, W, K], best first, and the new state of each path.
        """
        ...


@dataclass(frozen=True, slots=True)
class Grown:
    """Trees of a batch; node n+1 is entry n, in the order of the rule.

    Attributes:
        tokens_BN: int64.
        parents_BN: int64, 0 is the root.
        log_reach_BN: float64; -inf marks entries that are no node, at the end of a row.
    """

    tokens_BN: Tensor
    parents_BN: Tensor
    log_reach_BN: Tensor

    def on_host(self) -> list[Nodes]:
        """Fetch the nodes of each row."""
        fetched = zip(self.tokens_BN.tolist(), self.parents_BN.tolist(), self.log_reach_BN.tolist(), strict=True)
        rows = []
        for tokens, parents, log_reach in fetched:
            count = sum(reach > -inf for reach in log_reach)
            rows.append(Nodes(tokens[:count], parents[:count], log_reach[:count]))
        return rows


class _Kept(NamedTuple):
    """The paths kept of one depth, smaller ranks first; ``numbers`` are places in the ledger, from 1."""

    tokens_BW: Tensor
    parents_BW: Tensor
    numbers_BW: Tensor
    reach_BW: Tensor


def grow(
    scores: Scores,
    anchors_B: Tensor,
    *,
    depth: int,
    budget: int,
    limits_B: Tensor | None = None,
    spine: bool = False,
) -> Grown:
    """Build one tree a row.

    Args:
        scores: of the words of each slot.
        anchors_B: the roots.
        depth: slots.
        budget: N.
        limits_B: deepest depth of each row, where they differ.
        spine: take the chain of best words first.
    """
    rows, device = len(anchors_B), anchors_B.device
    none = torch.zeros(rows, 1, dtype=torch.int64, device=device)
    kept = _Kept(anchors_B[:, None], none, none, none.double())
    state = scores.start()
    ledger: list[_Kept] = []
    made = 0
    for slot in range(min(depth, budget)):
        words_BWK, log_probs_BWK, state = scores.at(slot, kept.tokens_BW, state)
        reach_BWK = kept.reach_BW[:, :, None] + log_probs_BWK.double()
        if limits_B is not None:
            reach_BWK = reach_BWK.masked_fill((limits_B <= slot)[:, None, None], -inf)
        chosen_BW = _best(reach_BWK.flatten(1), budget - slot, spine=spine)
        above_BW = chosen_BW // words_BWK.shape[2]
        kept = _Kept(
            words_BWK.flatten(1).gather(1, chosen_BW),
            kept.numbers_BW.gather(1, above_BW),
            torch.arange(made + 1, made + 1 + chosen_BW.shape[1], device=device).expand(rows, -1),
            reach_BWK.flatten(1).gather(1, chosen_BW),
        )
        state = state.gather(1, above_BW[:, :, None].expand(-1, -1, state.shape[2]))
        ledger.append(kept)
        made += chosen_BW.shape[1]
    return _rank(ledger, budget, spine=spine)


def _best(reach_BM: Tensor, most: int, *, spine: bool) -> Tensor:
    """Entries of the ``most`` best paths, smaller ranks first; a stable sort leaves ties in that order too."""
    order_BM = _keys(reach_BM, spine=spine).sort(dim=1, descending=True, stable=True).indices
    return order_BM[:, :most].sort(dim=1).values


def _keys(reach_BM: Tensor, *, spine: bool) -> Tensor:
    """What paths of one depth are sorted by; the path of smallest ranks is the chain of best words."""
    if not spine:
        return reach_BM
    first_B1 = torch.where(reach_BM[:, :1] > -inf, inf, -inf)
    return torch.cat((first_B1.to(reach_BM), reach_BM[:, 1:]), 1)


def _rank(ledger: list[_Kept], budget: int, *, spine: bool) -> Grown:
    """Take the first N of the ledger, which is in the order of depths: a stable sort leaves ties in that order."""
    missing = max(0, budget - sum(kept.reach_BW.shape[1] for kept in ledger))
    keys_BM = torch.cat([_keys(kept.reach_BW, spine=spine) for kept in ledger], 1)
    keys_BM = functional.pad(keys_BM, (0, missing), value=-inf)
    order_BN = keys_BM.sort(dim=1, descending=True, stable=True).indices[:, :budget]
    tokens_BN, above_BN, reach_BN = (
        functional.pad(torch.cat(parts, 1), (0, missing), value=filler).gather(1, order_BN)
        for parts, filler in (
            ([kept.tokens_BW for kept in ledger], 0),
            ([kept.parents_BW for kept in ledger], 0),
            ([kept.reach_BW for kept in ledger], -inf),
        )
    )
    rows, entries = keys_BM.shape
    node_BM = order_BN.new_zeros(rows, 1 + entries)
    numbers_BN = torch.arange(1, 1 + budget, device=order_BN.device).expand(rows, -1)
    parents_BN = node_BM.scatter(1, 1 + order_BN, numbers_BN).gather(1, above_BN)
    return Grown(tokens_BN, parents_BN.masked_fill(reach_BN == -inf, 0), reach_BN)
