"""Random draft trees for the tests of kernels: parents and depths, who sees whom, paths."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Trees(NamedTuple):
    """One tree a row, of one width; node 0 is the root."""

    parents: Tensor
    depths: Tensor
    sees: Tensor

    def path(self, row: int, node: int) -> list[int]:
        """Nodes from the root down to ``node``."""
        return self.sees[row, node].nonzero()[:, 0].tolist()


KINDS = {
    "chain": lambda rng, node: node - 1,
    "star": lambda rng, node: 0,
    "any": lambda rng, node: int(rng.integers(node)),
    "deep": lambda rng, node: max(0, node - 1 - int(rng.exponential(1.5))),
}


def random_trees(kind: str, nodes: int, *, batch: int = 2, seed: int = 0) -> Trees:
    """Draw a tree a row."""
    rng = np.random.default_rng(seed)
    parents, depths = torch.zeros(2, batch, nodes, dtype=torch.int64)
    sees = torch.eye(nodes, dtype=torch.bool).repeat(batch, 1, 1)
    for row in range(batch):
        for node in range(1, nodes):
            parent = KINDS[kind](rng, node)
            parents[row, node] = parent
            depths[row, node] = depths[row, parent] + 1
            sees[row, node] |= sees[row, parent]
    return Trees(parents, depths, sees)


def padded(paths: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Paths of one length, whose rest means nothing, and how many nodes of each count."""
    longest = max(map(len, paths))
    return torch.tensor([p + [0] * (longest - len(p)) for p in paths]), torch.tensor([len(p) for p in paths])
