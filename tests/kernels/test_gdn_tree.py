"""The tree form of the delta rule against the recurrence along every path, outputs and committed states."""

import pytest
import torch
from kernels.recurrence import random_inputs, random_state, recur
from kernels.trees import KINDS, padded, random_trees

from outrider.kernels.gdn_chunk import chunk
from outrider.kernels.gdn_tree import commit, tree

EXACT = {"rtol": 0, "atol": 1e-11}
REGIMES = [(3.0, 0.0), (1e-3, 2.0), (60.0, 0.5)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [1, 2, 17, 64])
@pytest.mark.parametrize(("strongest", "alike"), REGIMES)
def test_every_node_is_the_end_of_its_own_path(kind: str, nodes: int, strongest: float, alike: float) -> None:
    trees = random_trees(kind, nodes, seed=nodes)
    inputs = random_inputs(nodes, strongest=strongest, alike=alike, seed=nodes)
    state = random_state(inputs)
    before = state.clone()
    out, tape = tree(*inputs, state, trees.sees)
    assert torch.equal(state, before)
    for node in {0, nodes // 2, nodes - 1}:
        paths = [trees.path(row, node) for row in range(2)]
        after = commit(state, tape, *padded(paths))
        for row, path in enumerate(paths):
            along = type(inputs)(*(tensor[row : row + 1, path] for tensor in inputs))
            wanted, last = recur(along, state[row : row + 1])
            torch.testing.assert_close(out[row, node], wanted[0, -1], **EXACT)
            torch.testing.assert_close(after[row], last[0], **EXACT)


def test_a_row_of_which_nothing_counts_keeps_its_state() -> None:
    inputs = random_inputs(9)
    state = random_state(inputs)
    _, tape = tree(*inputs, state, random_trees("any", 9).sees)
    path = torch.zeros(2, 4, dtype=torch.int64)
    after = commit(state, tape, path, torch.tensor([0, 1]))
    assert torch.equal(after[0], state[0])
    assert not torch.equal(after[1], state[1])


def test_a_chain_is_what_the_chunked_form_gives() -> None:
    inputs = random_inputs(40)
    state = random_state(inputs)
    out, tape = tree(*inputs, state, random_trees("chain", 40).sees)
    wanted, after = chunk(*inputs, state)
    torch.testing.assert_close(out, wanted, **EXACT)
    whole = torch.arange(40).expand(2, 40)
    torch.testing.assert_close(commit(state, tape, whole, torch.tensor([40, 40])), after, **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_loses_no_more_than_the_recurrence_itself(kind: str) -> None:
    """Relative to the outputs' size, with heads of 128 by 128 and 64 nodes, keys alike or not."""
    for alike in (0.0, 2.0):
        trees = random_trees(kind, 64, batch=1, seed=3)
        inputs = random_inputs(64, batch=1, heads=1, group=2, sizes=(128, 128), strongest=0.5, alike=alike)
        state = random_state(inputs)
        exact, _ = tree(*inputs, state, trees.sees)
        out, _ = tree(*inputs.to(torch.float32), state.float(), trees.sees)
        assert float((out - exact).abs().max() / exact.square().mean().sqrt()) < 2e-5
