"""Verification: which path is accepted, and the bonus token. Lossless at any temperature.

Greedy follows the argmax. A deterministic tree is walked by a draw from the target's law at each node. A chain
with a draft distribution is accepted by ratio, min(1, p/q), with the residual at the first rejection (Leviathan
et al. 2023; Chen et al. 2023). What is none of these is refused when the tree is made.
Shape letters: B batch rows, N nodes, K = N-1 drafts of a chain, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from outrider.engine.rules import Rules, draw
from outrider.engine.tree import DraftTree
from outrider.engine.uniforms import ACCEPT, DECIDE, RESIDUAL, Uniforms
from outrider.engine.walk import Walk, follow
from outrider.engine.words import best_word
from outrider.errors import VerificationError


def verify(
    tree: DraftTree,
    logits_BNV: Tensor,
    rules: Sequence[Rules | None],
    positions: Sequence[int],
) -> Walk:
    """Walk each row of the tree by its own rules.

    Args:
        tree: what was run.
        logits_BNV: raw logits of the target after each node, float32.
        rules: per row; None for a row that does not count.
        positions: per row the index in the sequence of the token that follows the root.
    """
    decisions_BN = best_word(logits_BNV)
    for row, rule in enumerate(rules):
        if rule is None or (rule.params.greedy and not rule.params.edits_logits):
            continue
        if row not in tree.drawn or rule.params.greedy:
            decisions_BN[row] = _decide(tree, row, logits_BNV[row], rule, positions[row])
    walk = follow(tree, decisions_BN)
    for row in tree.drawn:
        rule = rules[row]
        if rule is not None and not rule.params.greedy:
            law_NV = _law(tree, row, logits_BNV[row], rule)
            _accept_by_ratio(tree, row, law_NV, walk, draws=(rule.uniforms, positions[row]))
    return walk


def _decide(tree: DraftTree, row: int, logits_NV: Tensor, rule: Rules, position: int) -> Tensor:
    """One decision a node: the argmax of the edited logits, or a draw from the processed law."""
    if rule.params.greedy:
        return rule.edit(logits_NV, tree.tokens_BN[row], tree.visible_BNN[row]).argmax(-1)
    by_depth = _on_device(rule.uniforms, DECIDE, position, logits_NV)
    return draw(_law(tree, row, logits_NV, rule), by_depth[tree.depths_BN[row]])


def _law(tree: DraftTree, row: int, logits_NV: Tensor, rule: Rules) -> Tensor:
    """The processed law after each node, float64 [N, V]."""
    return rule.probabilities(rule.edit(logits_NV, tree.tokens_BN[row], tree.visible_BNN[row]))


def _accept_by_ratio(tree: DraftTree, row: int, target_NV: Tensor, walk: Walk, *, draws: tuple[Uniforms, int]) -> None:
    """Accept a prefix of the chain by ratio and write it into the walk."""
    assert tree.draft_probs_BKV is not None  # noqa: S101 -- our own invariant
    uniforms, position = draws
    num_drafts = int(tree.counts_B[row]) - 1
    draft_KV = tree.draft_probs_BKV[row, :num_drafts].to(target_NV.dtype)
    if draft_KV.shape[-1] != target_NV.shape[-1]:
        raise VerificationError(
            f"The draft distribution has {draft_KV.shape[-1]} words and the target {target_NV.shape[-1]}; "
            "expected the same vocabulary."
        )
    tokens_K1 = tree.tokens_BN[row, 1 : 1 + num_drafts, None]
    p_K = target_NV[:num_drafts].gather(1, tokens_K1)[:, 0]
    q_K = draft_KV.gather(1, tokens_K1)[:, 0]
    if bool((q_K <= 0).any()):
        raise VerificationError(
            "A drafted token has probability 0 in its own draft distribution; expected the law it was drawn from."
        )
    kept_K = _on_device(uniforms, ACCEPT, position, p_K) * q_K < p_K
    accepted = int(kept_K.long().cumprod(0).sum())
    law_V = target_NV[accepted]
    if accepted < num_drafts:
        residual_V = (law_V - draft_KV[accepted]).clamp(min=0)
        # p == q leaves no residual, and then a rejection has probability 0 but for rounding.
        law_V = torch.where(residual_V.sum() > 0, residual_V, law_V)
    last = _on_device(uniforms, RESIDUAL, position + accepted, law_V[:1])
    walk.path_BN[row] = torch.arange(tree.width, device=walk.path_BN.device)
    walk.accepted_B[row] = accepted
    walk.bonus_B[row] = draw(law_V[None], last)[0]


def _on_device(uniforms: Uniforms, purpose: int, position: int, like: Tensor) -> Tensor:
    """Uniforms of the positions from ``position`` on, as many as ``like`` is long, where it lives."""
    return torch.from_numpy(uniforms.at(purpose, position, len(like)).copy()).to(like.device)
