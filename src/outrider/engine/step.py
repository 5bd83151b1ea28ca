"""One pass of the engine: a chunk of a prompt, or a round. Open this file first.

    proposals = drafter.propose(...)          # tokens and parents; perhaps the law they were drawn from
    out       = target.forward(tree, cache)   # hidden states of every node; commits nothing
    walk      = verify(tree, logits, rules)   # the accepted path and the bonus token
    cache.commit(walk.path)                   # keys and values, states of recurrent layers

Plain decoding is a tree of the anchor alone. Nothing between proposal and commit asks the device a question
in greedy decoding; the caller reads the walk once, at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from outrider.engine.cache import Cache
from outrider.engine.interfaces import Target, TargetOutput
from outrider.engine.rules import Rules
from outrider.engine.tree import DraftTree
from outrider.engine.verify import verify
from outrider.engine.walk import Walk, whole


@dataclass(frozen=True, slots=True)
class Rows:
    """The slots of a batch and how much each has committed.

    Attributes:
        slots: contiguous.
        lengths: committed tokens a slot, on the host.
    """

    slots: slice
    lengths: tuple[int, ...]

    def lengths_B(self, device: torch.device) -> Tensor:  # noqa: N802 -- names a tensor by its shape
        """The lengths on the device."""
        return torch.tensor(self.lengths, device=device)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass produced; ``logits_BNV`` is None for a chunk of a prompt."""

    tree: DraftTree
    out: TargetOutput
    walk: Walk
    logits_BNV: Tensor | None


class Stepper:
    """A target with its cache, and the two kinds of passes over them.

    Args:
        target: the model whose text is wanted.
        cache: made by it.
        taps: blocks whose output the drafter reads.
        device: where the target lives.
    """

    def __init__(self, target: Target, cache: Cache, taps: tuple[int, ...], device: torch.device) -> None:
        self._target, self._cache, self._taps, self._device = target, cache, taps, device

    def begin(self, slot: int) -> None:
        """A new sequence starts in ``slot``."""
        self._cache.clear(slice(slot, slot + 1))

    @property
    def shares(self) -> bool:
        """Whether a prompt may take over what lies in the cache."""
        return self._cache.shares

    def share(self, source: int, slot: int, count: int) -> None:
        """Give a slot the first ``count`` committed tokens of another."""
        self._cache.share(source, slot, count)

    def read_chunk(self, rows: Rows, tokens: Sequence[int]) -> Outcome:
        """Commit a chunk of one sequence's prompt: a chain of which every node is kept."""
        tree = DraftTree.chain(torch.tensor([list(tokens)], device=self._device))
        out, walk = self._forward(rows, tree), whole(tree)
        self._commit(rows, tree, walk, tree.counts_B)
        return Outcome(tree, out, walk, None)

    def run_round(self, rows: Rows, tree: DraftTree, rules: Sequence[Rules | None]) -> Outcome:
        """Verify one tree a row and commit the walked paths."""
        out = self._forward(rows, tree)
        logits_BNV = self._target.logits(out.hidden_BNH)
        walk = verify(tree, logits_BNV, rules, [length + 1 for length in rows.lengths])
        counted_B = torch.tensor([rule is not None for rule in rules], device=self._device)
        self._commit(rows, tree, walk, (walk.accepted_B + 1) * counted_B)
        return Outcome(tree, out, walk, logits_BNV)

    def _commit(self, rows: Rows, tree: DraftTree, walk: Walk, counts_B: Tensor) -> None:
        # A chain's accepted rows already lie where they belong.
        lengths_B = rows.lengths_B(self._device)
        self._cache.commit(rows.slots, lengths_B, walk.path_BN, counts_B, in_place=tree.is_chain)

    def _forward(self, rows: Rows, tree: DraftTree) -> TargetOutput:
        return self._target.forward(
            tree,
            self._cache,
            rows.slots,
            rows.lengths_B(self._device),
            span=max(rows.lengths) + tree.width,
            shortest=min(rows.lengths),
            taps=self._taps,
        )
