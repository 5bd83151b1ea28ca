"""Attention over a draft tree: the kernels against the plain one."""

import pytest
import torch
from kernels.on_device import DEVICE, DTYPES, error, needs_triton, tolerance
from kernels.trees import random_trees

from outrider.kernels.tree_attention import Sight, attention, attention_plainly

pytestmark = needs_triton


def case(nodes, heads, groups, size, lengths, *, rows=160, seed=0):
    torch.manual_seed(seed)
    trees = random_trees("any", nodes, batch=len(lengths), seed=seed)
    depths = trees.depths.to(DEVICE)
    sight = Sight(trees.sees.to(DEVICE), depths, depths, torch.tensor(lengths, device=DEVICE))
    query = torch.randn(len(lengths), nodes, heads, size, device=DEVICE)
    slots = torch.randn(2, 5, groups, rows, size, device=DEVICE)
    return query, slots[0, 1 : 1 + len(lengths)], slots[1, 1 : 1 + len(lengths)], sight


def check(dtype, case, **options):
    query, key, value, sight = case
    gate = torch.randn(*query.shape[:2], query.shape[2] * query.shape[3] + 3, device=DEVICE)[..., 3:]
    for given in (None, gate):
        halved = None if given is None else given.to(dtype)
        found = attention(*(t.to(dtype) for t in (query, key, value)), sight, **options, gate_BNX=halved)
        wanted = attention_plainly(query, key, value, sight, **options, gate_BNX=given)
        assert error(found, wanted) < tolerance(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "groups", "size"), [(6, 1, 16), (4, 4, 24), (8, 2, 64)])
@pytest.mark.parametrize("nodes", [1, 7])
def test_equals_plain_attention(dtype, nodes, heads, groups, size):
    check(dtype, case(nodes, heads, groups, size, [0, 63, 130]))


@pytest.mark.parametrize("window", [1, 4, 65])
def test_windows_count_positions_not_columns(window):
    check(torch.float32, case(9, 4, 2, 16, [0, 3, 100]), window=window)


def test_many_nodes_take_several_blocks():
    check(torch.float32, case(64, 6, 1, 16, [40, 90]))


def test_places_may_be_others_than_the_nodes():
    """As heads that guess have it: the second guess sees the first, which an earlier pass left."""
    query, key, value, sight = case(2, 4, 2, 16, [20, 31])
    sees = torch.tensor([[[1, 0, 1, 0, 0], [0, 1, 0, 1, 0]]], device=DEVICE).bool().expand(2, -1, -1)
    depths = torch.ones(2, 2, dtype=torch.int64, device=DEVICE)
    sight = Sight(sees, depths, torch.zeros(2, 5, dtype=torch.int64, device=DEVICE), sight.lengths_B)
    check(torch.float32, (query, key, value, sight))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("nodes", "size"), [(1, 256), (16, 128), (64, 256)])
def test_long_contexts(dtype, nodes, size):
    check(dtype, case(nodes, 24, 4, size, [0, 5000, 8191], rows=8300))
