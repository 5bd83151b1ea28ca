"""One pass of the engine: a chunk of a prompt, or a round. Open this file first.

    proposals = drafter.propose(...)          # tokens and parents; perhaps the law they were drawn from
    out       = target.forward(tree, cache)   # hidden states of every node; commits nothing
    walk      = verify(tree, logits, rules)   # the accepted path and the bonus token
    cache.commit(walk.path)

Plain decoding is a tree of the anchor alone. Nothing between proposal and commit asks the device a question
in greedy decoding; the caller reads the walk once, at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from outrider.engine.cache import Cache
from outrider.engine.interfaces import Drafter, Target, TargetOutput
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


def read_chunk(
    target: Target,
    drafter: Drafter,
    cache: Cache,
    rows: Rows,
    tokens: Sequence[int],
    device: torch.device,
) -> Outcome:
    """Commit a chunk of one sequence's prompt: a chain of which every node is kept."""
    tree = DraftTree.chain(torch.tensor([list(tokens)], device=device))
    out = _forward(target, drafter, cache, rows, tree, device)
    return Outcome(tree, out, whole(tree), None)


def run_round(
    target: Target,
    drafter: Drafter,
    cache: Cache,
    rows: Rows,
    tree: DraftTree,
    rules: Sequence[Rules | None],
    device: torch.device,
) -> Outcome:
    """Verify one tree a row and commit the walked paths."""
    out = _forward(target, drafter, cache, rows, tree, device)
    logits_BNV = target.logits(out.hidden_BNH)
    walk = verify(tree, logits_BNV, rules, [length + 1 for length in rows.lengths])
    if not tree.is_chain:  # a chain's accepted rows already lie where they belong
        cache.commit(rows.slots, rows.lengths_B(device), walk.path_BN)
    return Outcome(tree, out, walk, logits_BNV)


def _forward(
    target: Target,
    drafter: Drafter,
    cache: Cache,
    rows: Rows,
    tree: DraftTree,
    device: torch.device,
) -> TargetOutput:
    return target.forward(
        tree,
        cache,
        rows.slots,
        rows.lengths_B(device),
        span=max(rows.lengths) + tree.width,
        taps=drafter.taps,
    )
