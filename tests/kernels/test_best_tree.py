"""Trees that the kernel builds against those of the heap."""

import numpy as np
import pytest
import torch
from drafters.tree_cases import tokens_of
from kernels.on_device import DEVICE, needs_triton

from outrider.drafters.trees.heap import best_first
from outrider.kernels.best_tree import BestTree, best_tree

pytestmark = needs_triton


def slots(rng: np.random.Generator, depth: int, words: int) -> list[list[float]]:
    drawn = rng.normal(size=(depth, words)).astype(np.float32) * rng.uniform(0.3, 3)
    return np.sort(drawn - np.logaddexp.reduce(drawn, 1, keepdims=True) - 0.05, 1)[:, ::-1].tolist()


def built(batch: list[list[list[float]]], width: int) -> BestTree:
    tokens = torch.tensor([tokens_of(row) for row in batch], device=DEVICE)
    return best_tree(
        tokens, torch.tensor(batch, device=DEVICE), torch.tensor([7, 9], device=DEVICE)[: len(batch)], width
    )


@pytest.mark.parametrize("width", [2, 16, 64])
@pytest.mark.parametrize(("depth", "words"), [(15, 8), (3, 4), (1, 16)])
def test_takes_the_nodes_of_the_heap(width, depth, words):
    rng = np.random.default_rng(width + depth)
    batch = [slots(rng, depth, words) for _ in range(2)]
    tree = built(batch, width)
    assert tree.tokens_BN[:, 0].tolist() == [7, 9]
    for row, log_probs in enumerate(batch):
        nodes = best_first(tokens_of(log_probs), log_probs, width - 1)
        count = int(tree.counts_B[row])
        assert count == 1 + len(nodes)
        assert tree.tokens_BN[row, 1:count].tolist() == nodes.tokens
        assert tree.parents_BN[row, 1:count].tolist() == nodes.parents
        assert not tree.parents_BN[row, count:].any()


def test_nodes_see_their_ancestors_and_themselves():
    tree = built([slots(np.random.default_rng(5), 6, 5)], 24)
    seen = torch.eye(24, dtype=torch.bool, device=DEVICE)
    depths = [0] * 24
    for node in range(1, 24):
        parent = int(tree.parents_BN[0, node])
        seen[node] |= seen[parent]
        depths[node] = depths[parent] + 1
    assert torch.equal(tree.visible_BNN[0], seen)
    assert tree.depths_BN[0].tolist() == depths


def test_equally_probable_paths_make_a_tree():
    tree = built([[[-1.0, -1.0], [0.0, -1.0], [0.0, -2.0]]], 9)
    parents = tree.parents_BN[0].tolist()
    assert all(parent < node for node, parent in enumerate(parents) if node)
    pairs = list(zip(parents, tree.tokens_BN[0].tolist(), strict=True))[1:]
    assert len(set(pairs)) == len(pairs)
