"""The convolution over a tree against one along each path."""

import pytest
import torch
from kernels.trees import KINDS, padded, random_trees
from torch.nn import functional

from outrider.kernels.tree_convolution import commit_inputs, tree_convolution, window_slots

CHANNELS, WIDTH = 10, 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [1, 2, 5, 40])
def test_each_window_is_the_nodes_own_path(kind: str, nodes: int) -> None:
    gen = torch.Generator().manual_seed(nodes)
    trees = random_trees(kind, nodes, seed=nodes)
    inputs, stored, weight = (
        torch.randn(*shape, generator=gen, dtype=torch.float64)
        for shape in ((2, nodes, CHANNELS), (2, WIDTH - 1, CHANNELS), (CHANNELS, WIDTH))
    )
    slots = window_slots(trees.parents, trees.depths, WIDTH)
    both = torch.cat((stored, inputs), 1)
    out = tree_convolution(both, weight, slots)
    for node in range(nodes):
        paths = [trees.path(row, node) for row in range(2)]
        after = commit_inputs(both, WIDTH, *padded(paths))
        for row, path in enumerate(paths):
            text = torch.cat((stored[row], inputs[row, path]))
            wanted = functional.silu(functional.conv1d(text.T[None], weight[:, None], groups=CHANNELS))
            torch.testing.assert_close(out[row, node], wanted[0, :, -1])
            assert torch.equal(after[row], text[-(WIDTH - 1) :])


def test_nodes_of_depth_0_start_from_what_is_committed() -> None:
    """The documents of a packed row: chains side by side, each over the same past."""
    parents, depths = torch.tensor([[0, 0, 0, 2, 3]]), torch.tensor([[0, 1, 0, 1, 2]])
    assert window_slots(parents, depths, 3)[0].tolist() == [[0, 1, 2], [1, 2, 3], [0, 1, 4], [1, 4, 5], [4, 5, 6]]


def test_a_row_of_which_nothing_counts_keeps_its_inputs() -> None:
    inputs = torch.arange(14.0).view(1, 7, 2)
    assert torch.equal(commit_inputs(inputs, 4, torch.tensor([[0, 2]]), torch.tensor([0])), inputs[:, :3])
