"""The draft tree: what a drafter proposes and the target checks in one pass. Everything is one.

Shape letters: B batch rows, N nodes of a row (root included, padded to a common width), V vocabulary.
Node 0 is the root, the anchor. A parent stands before its children. A chain is a tree in which node i's
parent is node i-1; plain decoding is a tree of the root alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from outrider.errors import VerificationError

LAW_TOLERANCE = 1e-3  # how far the sum of a law in half precision may be from 1


@dataclass(frozen=True, slots=True)
class Proposal:
    """One sequence's guesses, on the host.

    Attributes:
        tokens: token of node 1, 2, ...; the root is not listed.
        parents: parent of node 1, 2, ... (0 is the root).
        draft_probs_KV: the law each token was drawn from, shape [len(tokens), V], or None where the tokens
            are a deterministic choice. Chains only.
        reach: the drafter's estimate for each node that it is accepted (all of its ancestors with it); for traces.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    draft_probs_KV: Tensor | None = None
    reach: tuple[float, ...] | None = None

    @classmethod
    def chain(
        cls,
        tokens: Sequence[int],
        draft_probs_KV: Tensor | None = None,
        reach: tuple[float, ...] | None = None,
    ) -> "Proposal":
        """Tokens one after the other."""
        return cls(tuple(tokens), tuple(range(len(tokens))), draft_probs_KV, reach)

    @property
    def is_chain(self) -> bool:
        """Whether each node follows the one before."""
        return self.parents == tuple(range(len(self.parents)))

    def check(self) -> None:
        """Refuse a proposal that is no tree.

        Raises:
            VerificationError: a parent stands after its child, siblings carry the same token (a walk could
                follow the wrong copy), or a tree comes with a draft distribution.
        """
        if len(self.tokens) != len(self.parents):
            raise VerificationError(
                f"Proposal has {len(self.tokens)} tokens and {len(self.parents)} parents; expected one parent a token."
            )
        for node, parent in enumerate(self.parents, start=1):
            if not 0 <= parent < node:
                raise VerificationError(
                    f"Proposal node {node} has parent {parent}; expected an earlier node (0 to {node - 1})."
                )
        if self.reach is not None and len(self.reach) != len(self.tokens):
            raise VerificationError(
                f"Proposal has {len(self.tokens)} tokens and {len(self.reach)} estimates (reach); expected one a token."
            )
        if len(set(zip(self.parents, self.tokens, strict=True))) != len(self.tokens):
            raise VerificationError("Proposal has siblings with the same token; merge them into one node.")
        if self.draft_probs_KV is not None:
            self._check_law(self.draft_probs_KV)

    def _check_law(self, law_KV: Tensor) -> None:
        if not self.is_chain:
            raise VerificationError(
                "Proposal is a tree with a draft distribution: only chains can be verified losslessly "
                "by acceptance ratio; propose a chain, or a tree of deterministic nodes."
            )
        if law_KV.dim() != 2 or len(law_KV) != len(self.tokens):  # noqa: PLR2004 -- [K, V]
            raise VerificationError(
                f"Proposal has {len(self.tokens)} tokens and a draft distribution of shape "
                f"{tuple(law_KV.shape)}; expected one law over the vocabulary a token."
            )
        if self.tokens and not bool(((law_KV.sum(-1) - 1).abs() < LAW_TOLERANCE).all() & (law_KV >= 0).all()):
            raise VerificationError(
                "A draft distribution is no law: expected rows of probabilities that sum to 1; "
                "give the law the tokens were drawn from, after its own temperature and cuts."
            )

    @property
    def depth(self) -> int:
        """Depth of the deepest node; 0 for an empty proposal."""
        depths = [0]
        for parent in self.parents:
            depths.append(depths[parent] + 1)
        return max(depths)


@dataclass(frozen=True, slots=True)
class DraftTree:
    """The proposals of a batch as tensors of one width.

    Attributes:
        tokens_BN: int64.
        parents_BN: int64; the root's is 0.
        depths_BN: int64; the root's is 0.
        visible_BNN: bool; [b, i, j] is whether node j is an ancestor of node i, or i itself.
        counts_B: int64; real nodes of each row, root included. Nodes beyond are padding: children of the
            root that no walk may enter.
        is_chain: known on the host: committing a path of a chain moves nothing.
        draft_probs_BKV: [B, N-1, V] law that node k+1 was drawn from, or None where no row has any.
        drawn: known on the host: rows whose nodes were drawn from a law.
        kept: known on the host: all real nodes will be committed (a chunk of a prompt), so recurrent layers need only
            the state after the last. Each node follows the one before, or has depth 0: documents of a packed row, each
            over an empty cache.
    """

    tokens_BN: Tensor
    parents_BN: Tensor
    depths_BN: Tensor
    visible_BNN: Tensor
    counts_B: Tensor
    is_chain: bool
    draft_probs_BKV: Tensor | None = None
    drawn: frozenset[int] = frozenset()
    kept: bool = False

    @property
    def width(self) -> int:
        """Nodes of a row, root and padding included."""
        return self.tokens_BN.shape[1]

    @classmethod
    def chain(cls, tokens_BN: Tensor, counts_B: Tensor | None = None) -> "DraftTree":
        """Known texts: each token follows the one before; the first ``counts`` of each row, or all, are real."""
        rows, width = tokens_BN.shape
        device = tokens_BN.device
        order = torch.arange(width, device=device).expand(rows, width)
        visible = torch.ones(width, width, dtype=torch.bool, device=device).tril()
        return cls(
            tokens_BN=tokens_BN,
            parents_BN=(order - 1).clamp(min=0),
            depths_BN=order,
            visible_BNN=visible.expand(rows, width, width),
            counts_B=torch.full((rows,), width, device=device) if counts_B is None else counts_B,
            is_chain=True,
            kept=True,
        )

    @classmethod
    def of(cls, anchors: Sequence[int], proposals: Sequence[Proposal], device: torch.device) -> "DraftTree":
        """Put a batch of proposals under their anchors and pad them to one width.

        Raises:
            VerificationError: a proposal is no tree.
        """
        width = 1 + max(len(proposal.tokens) for proposal in proposals)
        shape = (len(anchors), width)
        tokens, parents, depths = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        visible = np.zeros((*shape, width), dtype=bool)
        for row, (anchor, proposal) in enumerate(zip(anchors, proposals, strict=True)):
            proposal.check()
            tokens[row], parents[row, 1:] = anchor, 0
            _fill(proposal, tokens[row], parents[row], depths[row], visible[row])
        counts = [1 + len(proposal.tokens) for proposal in proposals]
        return cls(
            tokens_BN=torch.from_numpy(tokens).to(device),
            parents_BN=torch.from_numpy(parents).to(device),
            depths_BN=torch.from_numpy(depths).to(device),
            visible_BNN=torch.from_numpy(visible).to(device),
            counts_B=torch.tensor(counts, device=device),
            is_chain=all(proposal.is_chain for proposal in proposals),
            draft_probs_BKV=_stack_probs(proposals, width - 1, device),
            drawn=frozenset(row for row, proposal in enumerate(proposals) if _law_of(proposal) is not None),
        )


def _fill(
    proposal: Proposal,
    tokens: np.ndarray,
    parents: np.ndarray,
    depths: np.ndarray,
    visible: np.ndarray,
) -> None:
    """Write one row in place; what the proposal does not fill stays padding under the root."""
    real = len(proposal.tokens)
    tokens[1 : 1 + real] = proposal.tokens
    parents[1 : 1 + real] = proposal.parents
    depths[1:] = 1
    visible[0, 0] = True
    for node in range(1, len(tokens)):
        parent = parents[node]
        depths[node] = depths[parent] + 1
        visible[node] = visible[parent]
        visible[node, node] = True


def _law_of(proposal: Proposal) -> Tensor | None:
    return proposal.draft_probs_KV if proposal.tokens else None


def _stack_probs(proposals: Sequence[Proposal], width: int, device: torch.device) -> Tensor | None:
    given = [law_KV for law_KV in map(_law_of, proposals) if law_KV is not None]
    if not given:
        return None
    stacked = torch.zeros(len(proposals), width, given[0].shape[-1], dtype=given[0].dtype, device=device)
    for row, proposal in enumerate(proposals):
        law_KV = _law_of(proposal)
        if law_KV is not None:
            stacked[row, : len(law_KV)] = law_KV
    return stacked
