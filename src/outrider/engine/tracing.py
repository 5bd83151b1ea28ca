"""What a round was, for later study: its tree, what drafter and target gave each node, the accepted path.

Made only where somebody listens (``Engine.recorder``). Knows no file. Free of torch.
Shape letters: B batch rows, N nodes, V vocabulary.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from outrider.engine.sequence import Sequence
    from outrider.engine.step import Outcome, Rows
    from outrider.engine.tree import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """One sequence's round; nodes are numbered from 1, the root (the anchor) is 0.

    Attributes:
        sequence_id: the engine's number of the sequence.
        round: of this sequence, from 1.
        position: index in the sequence, prompt included, of the first token after the anchor.
        anchor: the last committed token.
        tokens: of node 1, 2, ...
        parents: of node 1, 2, ...
        reach: the drafter's estimate for each node that it is accepted, or None where it has none.
        target: probability of each node's token after its ancestors by the target's own law: raw softmax, before
            bias, penalties and temperature.
        sampled: whether the tokens were drawn from a law of the drafter.
        path: the accepted nodes, from the root down, the root not listed.
        bonus: the token that the target decided after them.
        kept: tokens that became part of the text, bonus included; fewer than ``path`` and bonus where it ended.
        seconds: from proposal to walk; shared by all rows of the batch.
    """

    sequence_id: int
    round: int
    position: int
    anchor: int
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    reach: tuple[float, ...] | None
    target: tuple[float, ...]
    sampled: bool
    path: tuple[int, ...]
    bonus: int
    kept: int
    seconds: float


Recorder = Callable[[RoundRecord], None]


def round_records(
    batch: "Iterable[Sequence | None]",
    rows: "Rows",
    proposals: "Iterable[Proposal]",
    outcome: "Outcome",
    *,
    seconds: float,
) -> Iterator[RoundRecord]:
    """Describe what has just happened to each sequence of a batch.

    Args:
        batch: with the round's tokens already added; None for a row that does not count.
        rows: how much each had committed before.
        proposals: one a row.
        outcome: of the round.
        seconds: of the round.
    """
    for row, (sequence, proposal) in enumerate(zip(batch, proposals, strict=True)):
        if sequence is not None:
            position = rows.lengths[row] + 1
            yield _record(sequence, proposal, outcome, row, position=position, seconds=seconds)


def _record(
    sequence: "Sequence", proposal: "Proposal", outcome: "Outcome", row: int, *, position: int, seconds: float
) -> RoundRecord:
    assert outcome.logits_BNV is not None  # noqa: S101 -- our own invariant: rounds have logits
    walk = outcome.walk
    accepted = int(walk.accepted_B[row])
    return RoundRecord(
        sequence_id=sequence.id,
        round=len(sequence.rounds),
        position=position,
        anchor=int(outcome.tree.tokens_BN[row, 0]),
        tokens=proposal.tokens,
        parents=proposal.parents,
        reach=proposal.reach,
        target=_target_law(proposal, outcome.logits_BNV[row]),
        sampled=proposal.draft_probs_KV is not None,
        path=tuple(walk.path_BN[row, 1 : 1 + accepted].tolist()),
        bonus=int(walk.bonus_B[row]),
        kept=sequence.length - position,
        seconds=seconds,
    )


def _target_law(proposal: "Proposal", logits_NV: "Tensor") -> tuple[float, ...]:
    """Probability of each node after its parent."""
    # Row by row, only those with children: all at once would move every logit through memory.
    log_sums = {parent: float(logits_NV[parent].logsumexp(-1)) for parent in set(proposal.parents)}
    logits = logits_NV[list(proposal.parents), list(proposal.tokens)].tolist()
    return tuple(math.exp(logit - log_sums[parent]) for logit, parent in zip(logits, proposal.parents, strict=True))
