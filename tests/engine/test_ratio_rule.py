"""One step of verification, enumerated: every uniform of a grid that meets the laws' own fractions.

Laws are multiples of 1/6 and the grid has 60 midpoints: acceptance min(1, p/q) and residual are then exact counts,
so the law of the emitted token must equal p but for float rounding, with no chance involved.
"""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import parts, proposals

from outrider.engine.params import SamplingParams
from outrider.engine.rules import Rules
from outrider.engine.tree import DraftTree, Proposal
from outrider.engine.uniforms import ACCEPT, DECIDE, RESIDUAL
from outrider.engine.verify import verify

CPU = torch.device("cpu")
WORDS, WHOLE, GRID = 4, 6, 60
MIDPOINTS = (np.arange(GRID) + 0.5) / GRID
LAWS = parts(WORDS, WHOLE)


class Fixed:
    """Uniforms that a test chose, by purpose and step after the root."""

    def __init__(self, chosen: dict[int, list[float]]) -> None:
        self._chosen = chosen

    def at(self, purpose: int, position: int, count: int) -> np.ndarray:
        steps = self._chosen[purpose]
        return np.array([steps[min(position - 1 + step, len(steps) - 1)] for step in range(count)])


def rules_with(chosen: dict[int, list[float]]) -> Rules:
    rules = Rules(SamplingParams(temperature=1.0), WORDS, CPU)
    rules.uniforms = Fixed(chosen)
    return rules


def run(proposal: Proposal, laws_NV: np.ndarray, uniforms: list[dict[int, list[float]]]):
    rows = len(uniforms)
    tree = DraftTree.of([0] * rows, [proposal] * rows, CPU)
    logits = torch.from_numpy(laws_NV).float().log().expand(rows, -1, -1)
    return tree, verify(tree, logits, [rules_with(chosen) for chosen in uniforms], [1] * rows)


def share(flags: torch.Tensor) -> float:
    return float(flags.double().mean())


@settings(max_examples=10)
@given(LAWS, LAWS)
def test_acceptance_and_residual_give_back_the_target(p_parts, q_parts):
    p, q = np.array(p_parts) / WHOLE, np.array(q_parts) / WHOLE
    emitted = np.zeros(WORDS)
    for word in np.flatnonzero(q):
        proposal = Proposal.chain([int(word)], torch.from_numpy(q)[None])
        laws = np.stack((p, np.full(WORDS, 1 / WORDS)))
        _, walk = run(proposal, laws, [{ACCEPT: [u], RESIDUAL: [0.5]} for u in MIDPOINTS])
        kept = share(walk.accepted_B == 1)
        assert kept == pytest.approx(min(1.0, p[word] / q[word]), abs=1e-12)
        emitted[word] += q[word] * kept
        if kept < 1:
            last = 1 - 0.5 / GRID
            _, walk = run(proposal, laws, [{ACCEPT: [last], RESIDUAL: [u]} for u in MIDPOINTS])
            assert not walk.accepted_B.any()
            residual = torch.bincount(walk.bonus_B, minlength=WORDS).numpy() / GRID
            emitted += q[word] * (1 - kept) * residual
    np.testing.assert_allclose(emitted, p, atol=1e-12)


@given(LAWS, LAWS, LAWS)
def test_after_a_whole_chain_the_bonus_is_drawn_from_the_target(p_parts, q_parts, next_parts):
    p, q = np.array(p_parts) / WHOLE, np.array(q_parts) / WHOLE
    both = np.flatnonzero((q > 0) & (p > 0))
    assume(len(both))
    proposal = Proposal.chain([int(both[0])], torch.from_numpy(q)[None])
    laws = np.stack((p, np.array(next_parts) / WHOLE))
    chosen = [{ACCEPT: [0.0], RESIDUAL: [0.5, u]} for u in MIDPOINTS]
    _, walk = run(proposal, laws, chosen)
    assert (walk.accepted_B == 1).all()
    bonus = torch.bincount(walk.bonus_B, minlength=WORDS).numpy() / GRID
    np.testing.assert_allclose(bonus, laws[1], atol=1e-12)


@given(proposals(WORDS, 6), st.data())
def test_the_first_two_tokens_of_a_tree_follow_the_law_of_each_node(proposal, data):
    laws = np.array([data.draw(LAWS) for _ in range(1 + len(proposal.tokens))]) / WHOLE
    twelfths = (np.arange(12) + 0.5) / 12
    grid = [(first, second) for first in twelfths for second in twelfths]
    tree, walk = run(proposal, laws, [{DECIDE: [first, second]} for first, second in grid])
    children = {
        token: node
        for node, (token, parent) in enumerate(zip(proposal.tokens, proposal.parents, strict=True), start=1)
        if parent == 0
    }
    path = tree.tokens_BN.gather(1, walk.path_BN)
    first = torch.where(walk.accepted_B > 0, path[:, min(1, tree.width - 1)], walk.bonus_B)
    np.testing.assert_allclose(torch.bincount(first, minlength=WORDS).numpy() / 144, laws[0])
    for token, node in children.items():
        inside = first == token
        assert torch.equal(inside, inside & (walk.accepted_B > 0)), "a drafted word was passed over"
        if inside.any():
            deeper = path[:, min(2, tree.width - 1)]
            second = torch.where(walk.accepted_B > 1, deeper, walk.bonus_B)[inside]
            found = torch.bincount(second, minlength=WORDS).numpy() / int(inside.sum())
            np.testing.assert_allclose(found, laws[node])
