"""Log-probabilities of the tokens of a walk, from the target's raw logits."""

import torch

from outrider.engine.events import Logprob
from outrider.engine.step import Outcome
from outrider.engine.words import best_words


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
    values_PK, words_PK = best_words(laws_PV, top)
    told_P1 = torch.tensor(tokens, device=laws_PV.device)[:, None]
    own = laws_PV.gather(1, told_P1)[:, 0].tolist()
    return [
        Logprob(chosen, tuple(zip(words, values, strict=True)))
        for chosen, words, values in zip(own, words_PK.tolist(), values_PK.tolist(), strict=True)
    ]
