"""Drafting methods in their device form: what ``engine.rounds`` takes, over the same memories as the drafters.

Prompts are read and shown to the memory as always; from there on rounds run on the device alone. Drafts are as long,
and trees as large, as they are told: nothing here adapts, for that would take a question to the device.
Shape letters: B batch rows, N nodes, P longest path, K slots that predict, H hidden, V words.
"""

from dataclasses import replace

import torch
from torch import Tensor

from outrider.drafters.blocks import Blocks
from outrider.drafters.heads import Heads
from outrider.drafters.trees.candidates import AfterPath, Alone, Candidates
from outrider.drafters.trees.frontier import Grown, grow
from outrider.engine.rounds import Decided
from outrider.engine.tree import DraftTree
from outrider.engine.words import best_word
from outrider.kernels.best_tree import best_tree
from outrider.kernels.launch import can_run
from outrider.kernels.top_words import top_words
from outrider.models.mtp import Past

WORDS = 16  # of a slot that may become nodes, as in the drafter ``ddtree``
MOST_WIDTH = 128  # of a tree that one program builds


class PlainRounds:
    """Plain decoding: the anchor alone."""

    depth, width = 0, 1
    taps: tuple[int, ...] = ()

    def __init__(self) -> None:
        self._chain = _Chain()

    def propose(self, anchors_B: Tensor, lengths_B: Tensor) -> DraftTree:  # noqa: ARG002 -- it proposes nothing
        """Propose nothing."""
        return self._chain.of(anchors_B[:, None])

    def observe(self, decided: Decided) -> None:
        """Learn nothing."""

    def took(self, counts: list[int]) -> None:
        """Count nothing."""


class MTPRounds:
    """Chains of multi-token prediction heads.

    Args:
        heads: with what they remember of the slots.
        rows: the slots of the batch.
        tokens: guesses a round.
    """

    taps: tuple[int, ...] = ()

    def __init__(self, heads: Heads, rows: slice, tokens: int) -> None:
        self._heads, self._rows, self.depth, self.width = heads, rows, tokens, tokens + 1
        self._chain = _Chain()

    def propose(self, anchors_B: Tensor, lengths_B: Tensor) -> DraftTree:
        """Run the heads on their own output."""
        network, past = self._heads.network, Past(self._heads.cache, self._rows, lengths_B, None)
        hidden_B1H, tokens = self._heads.last_SH[self._rows][:, None], [anchors_B]
        for depth in range(self.depth):
            tokens.append(best_word(network.target.logits(hidden_B1H)[:, 0]))
            if depth + 1 < self.depth:
                sees_B1M = torch.ones(len(anchors_B), 1, depth + 1, dtype=torch.bool, device=anchors_B.device)
                hidden_B1H = network.guess(tokens[-1][:, None], hidden_B1H, past, sees_B1M, depth=depth, first=depth)
        return self._chain.of(torch.stack(tokens, 1))

    def observe(self, decided: Decided) -> None:
        """Take the decided positions in; what the heads say after the last one scores the next guess."""
        counts_B, last_BH = decided.counts_B, self._heads.last_SH[self._rows]
        # A row that kept fewer gets positions behind its own end, which its next ones overwrite.
        hidden_BPH = decided.out.hidden_BNH[:, : self.depth + 1]
        past = Past(self._heads.cache, self._rows, decided.lengths_B, None)
        said_BPH = self._heads.network.read(decided.tokens_BP, hidden_BPH, past)
        at_B11 = (counts_B - 1).clamp(min=0)[:, None, None].expand(-1, 1, said_BPH.shape[2])
        last_BH.copy_(torch.where(counts_B[:, None] > 0, said_BPH.gather(1, at_B11)[:, 0], last_BH))

    def took(self, counts: list[int]) -> None:
        """Count what the slots remember by now."""
        self._heads.lengths.add(self._rows, counts)


class BlockRounds:
    """Chains, or trees of a fixed width, from one pass of a draft network.

    Args:
        blocks: the network with what it remembers of the slots.
        rows: the slots of the batch.
        width: nodes of a tree with the root, or None for chains.
        tokens: deepest guess; None for all that a block gives.
    """

    def __init__(self, blocks: Blocks, rows: slice, *, width: int | None = None, tokens: int | None = None) -> None:
        config = blocks.network.config
        self._blocks, self._rows, self._tree = blocks, rows, width is not None
        deepest = config.max_tokens if width is None else min(config.max_tokens, width - 1)
        self.depth, self.taps = min(tokens or deepest, deepest), config.taps
        self.width = width or self.depth + 1
        self._chain = _Chain()

    def propose(self, anchors_B: Tensor, lengths_B: Tensor) -> DraftTree:
        """Run the blocks; take the best word of each slot, or the best paths."""
        network = self._blocks.network
        draft = network.draft(anchors_B, self._blocks.cache, self._rows, lengths_B, span=None)
        hidden_BKH, logits_BKV = draft.hidden_BKH[:, : self.depth], draft.logits_BKV[:, : self.depth]
        width = self.width
        if network.correction is None and not self._tree:
            words_BK = best_word(logits_BKV)
            tokens_BK = words_BK if network.words is None else network.words[words_BK]
            return self._chain.of(torch.cat((anchors_B[:, None], tokens_BK), 1))
        if network.correction is not None:
            found = candidates(logits_BKV, network.correction.candidates or WORDS, network.words)
            scores = AfterPath(network.correction, hidden_BKH, found)
            grown = grow(scores, anchors_B, depth=self.depth, budget=width - 1, spine=not self._tree)
            return tree_of(anchors_B, grown, self.depth)
        found = candidates(logits_BKV, WORDS, network.words)
        if can_run(anchors_B.device) and width <= MOST_WIDTH:
            built = best_tree(found.tokens_BLK, found.log_probs_BLK, anchors_B, width)
            return DraftTree(*built, is_chain=False)
        return tree_of(anchors_B, grow(Alone(found), anchors_B, depth=self.depth, budget=width - 1), self.depth)

    def observe(self, decided: Decided) -> None:
        """Remember the features of the path; rows that kept fewer get some behind their own end."""
        network = self._blocks.network
        path_BP1 = decided.path_BP[:, :, None]
        features_BPF = torch.cat(
            [
                tap_BNH.gather(1, path_BP1.expand(-1, -1, tap_BNH.shape[-1]))
                for tap_BNH in (decided.out.taps[tap] for tap in network.config.taps)
            ],
            -1,
        )
        network.remember(features_BPF, self._blocks.cache, self._rows, decided.lengths_B, span=None)

    def took(self, counts: list[int]) -> None:
        """Count what the slots remember by now."""
        self._blocks.lengths.add(self._rows, counts)


def candidates(logits_BLV: Tensor, count: int, words_V: Tensor | None) -> Candidates:
    """The best words of each slot, by the kernel where it runs."""
    count = min(count, logits_BLV.shape[-1])
    if not can_run(logits_BLV.device):
        return Candidates.of(logits_BLV, count, words_V)
    top = top_words(logits_BLV.flatten(0, 1), count)
    shape = logits_BLV.shape[:2]
    own_BLK = top.words_RK.view(*shape, count)
    tokens_BLK = own_BLK if words_V is None else words_V[own_BLK]
    return Candidates(own_BLK, tokens_BLK, top.values_RK.view(*shape, count), top.total_R.view(shape))


def tree_of(anchors_B: Tensor, grown: Grown, depth: int) -> DraftTree:
    """Put grown nodes under their anchors, on the device."""
    tokens_BN = torch.cat((anchors_B[:, None], grown.tokens_BN), 1)
    parents_BN = torch.cat((torch.zeros_like(anchors_B)[:, None], grown.parents_BN), 1)
    width = tokens_BN.shape[1]
    visible_BNN = torch.eye(width, dtype=torch.bool, device=anchors_B.device).repeat(len(anchors_B), 1, 1)
    above_BN = torch.arange(width, device=anchors_B.device).expand_as(parents_BN)
    for _ in range(depth):
        above_BN = parents_BN.gather(1, above_BN)
        visible_BNN = visible_BNN.scatter(2, above_BN[:, :, None], value=True)
    counts_B = 1 + (grown.log_reach_BN > float("-inf")).sum(1)
    return DraftTree(tokens_BN, parents_BN, visible_BNN.sum(2) - 1, visible_BNN, counts_B, is_chain=False)


class _Chain:
    """Chains of one shape, of which only the tokens change."""

    def __init__(self) -> None:
        self._shape: DraftTree | None = None

    def of(self, tokens_BN: Tensor) -> DraftTree:
        """Chains of these tokens."""
        if self._shape is None:
            whole = DraftTree.chain(tokens_BN)
            self._shape = replace(
                whole, kept=False, depths_BN=whole.depths_BN.contiguous(), visible_BNN=whole.visible_BNN.contiguous()
            )
        return replace(self._shape, tokens_BN=tokens_BN)
