"""Log-probabilities of the tokens of a walk, from the target's raw logits."""

from outrider.engine.events import Logprob
from outrider.engine.step import Outcome


def path_logprobs(outcome: Outcome, row: int, tokens: tuple[int, ...], top: int) -> list[Logprob]:
    """Return one entry a token: its own log-probability and those of the ``top`` most probable ones.

    Args:
        outcome: of a round (its logits are there).
        row: of the batch.
        tokens: accepted drafts and bonus; token i was decided at node ``path[i]``.
        top: how many alternatives; may be 0.
    """
    assert outcome.logits_BNV is not None  # noqa: S101 -- our own invariant: rounds have logits
    nodes = outcome.walk.path_BN[row, : len(tokens)]
    laws_PV = outcome.logits_BNV[row, nodes].log_softmax(-1)
    values, ids = laws_PV.topk(min(top, laws_PV.shape[-1]), dim=-1)
    entries = []
    for index, token in enumerate(tokens):
        pairs = zip(ids[index].tolist(), values[index].tolist(), strict=True)
        entries.append(Logprob(float(laws_PV[index, token]), tuple(pairs)))
    return entries
