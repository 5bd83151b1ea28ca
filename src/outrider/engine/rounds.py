"""Greedy rounds that never ask the device a question: propose, verify, walk, commit, all from tensors that stay there.

The host does not know how long the sequences have become, so nothing here depends on it: shapes are those of the
proposer, lengths and anchors live on the device, and what was decided is left in tensors of fixed places. A round can
therefore be captured once and replayed (``engine.graphs``). ``engine.step`` is the form for any request on any device.
Shape letters: B batch rows, N nodes, P longest path, root included.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from outrider.engine.cache import Cache
from outrider.engine.interfaces import Target, TargetOutput
from outrider.engine.tree import DraftTree
from outrider.engine.walk import follow
from outrider.engine.words import best_word


@dataclass(frozen=True, slots=True)
class Decided:
    """What a round decided, on the device.

    Attributes:
        out: hidden states and taps of every node.
        path_BP: nodes from the root down; beyond ``counts`` they mean nothing.
        tokens_BP: what follows each node of the path: accepted drafts, then the bonus token.
        counts_B: nodes of each path, and tokens; 0 for a row that does not run.
        lengths_B: committed tokens of each row before the round.
    """

    out: TargetOutput
    path_BP: Tensor
    tokens_BP: Tensor
    counts_B: Tensor
    lengths_B: Tensor


class Proposer(Protocol):
    """A drafting method in its device form, for fixed slots."""

    @property
    def depth(self) -> int:
        """Deepest node; 0 where nothing is proposed."""
        ...

    @property
    def width(self) -> int:
        """Nodes of a tree, root included."""
        ...

    @property
    def taps(self) -> tuple[int, ...]:
        """Blocks of the target whose output it reads."""
        ...

    def propose(self, anchors_B: Tensor, lengths_B: Tensor) -> DraftTree:
        """Make trees of one width under the anchors."""
        ...

    def observe(self, decided: Decided) -> None:
        """Learn what was decided."""
        ...

    def took(self, counts: list[int]) -> None:
        """The host has read what a round brought: tokens of each row."""
        ...


class DeviceRounds:
    """Rounds of a fixed batch.

    Args:
        target: the model whose text is wanted.
        cache: made by it, with the prompts in it; N rows of a slot must stay free behind its text.
        proposer: what drafts.
        rows: the slots of the batch.
        device: where all of it lives.
        idle: where rows that do not run leave their nodes: columns that nobody's text reaches, as N of any cache.

    Attributes:
        anchors_B: last token of each row.
        lengths_B: committed tokens, the anchor not among them.
        active_B: 1 for rows that run.
        tokens_BP, counts_B: what the last round decided (see ``Decided``).
    """

    def __init__(
        self, target: Target, cache: Cache, proposer: Proposer, rows: slice, device: torch.device, *, idle: int
    ) -> None:
        self._target, self._cache, self._proposer, self.rows = target, cache, proposer, rows
        batch = rows.stop - rows.start
        self.anchors_B, self.lengths_B, self.active_B, self.counts_B = torch.zeros(
            4, batch, dtype=torch.int64, device=device
        ).unbind(0)
        self.tokens_BP = torch.zeros(batch, proposer.depth + 1, dtype=torch.int64, device=device)
        self._idle = idle
        self.end_all()

    def begin(self, row: int, anchor: int, length: int) -> None:
        """A row runs from here on: its prompt but for the anchor is in the cache, and the proposer has seen it."""
        self.anchors_B[row], self.lengths_B[row], self.active_B[row] = anchor, length, 1

    def end(self, row: int) -> None:
        """A row stops: it is run on with the others, out of the way, and its rounds decide nothing."""
        self.active_B[row], self.lengths_B[row] = 0, self._idle

    def end_all(self) -> None:
        """No row runs."""
        self.active_B.zero_()
        self.lengths_B.fill_(self._idle)

    @torch.inference_mode()
    def step(self) -> None:
        """Run one round."""
        tree = self._proposer.propose(self.anchors_B, self.lengths_B)
        out = self._target.forward(tree, self._cache, self.rows, self.lengths_B, span=None, taps=self._proposer.taps)
        walk = follow(tree, best_word(self._target.logits(out.hidden_BNH)))
        path_BP = walk.path_BN[:, : self._proposer.depth + 1]
        counts_B = (walk.accepted_B + 1) * self.active_B
        tokens_BP = tree.tokens_BN.gather(1, path_BP).roll(-1, 1)
        tokens_BP = tokens_BP.scatter(1, walk.accepted_B[:, None], walk.bonus_B[:, None])
        self._cache.commit(self.rows, self.lengths_B, path_BP, counts_B, in_place=tree.is_chain)
        self._proposer.observe(Decided(out, path_BP, tokens_BP, counts_B, self.lengths_B))
        self.tokens_BP.copy_(tokens_BP)
        self.counts_B.copy_(counts_B)
        self.lengths_B.add_(counts_B)
        self.anchors_B.copy_(torch.where(self.active_B > 0, walk.bonus_B, self.anchors_B))
