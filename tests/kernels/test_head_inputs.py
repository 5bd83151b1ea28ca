"""Queries, keys and values made ready by the kernel against the layers' own norm, rotation and cache write."""

import pytest
import torch
from kernels.on_device import DEVICE, DTYPES, error, needs_triton, tolerance

from outrider.kernels.head_inputs import HeadShape, head_inputs
from outrider.models.layers import rms_norm, rotate

pytestmark = needs_triton


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "turned"), [(16, 16), (24, 8), (64, 16)])
@pytest.mark.parametrize("normed", [False, True])
def test_equals_norm_rotation_and_write(dtype, size, turned, normed):
    torch.manual_seed(1)
    batch, nodes, queries, keys, spare = 2, 5, 6, 2, 7
    vectors = torch.randn(batch, nodes, (queries + 2 * keys) * size + spare, device=DEVICE).to(dtype)
    norms = tuple(1 + torch.randn(2, size, device=DEVICE)) if normed else None
    angle = torch.randn(batch, nodes, 1, turned // 2, device=DEVICE)
    cos, sin = torch.cat((angle.cos(),) * 2, -1).to(dtype), torch.cat((-angle.sin(), angle.sin()), -1).to(dtype)
    columns = torch.tensor([[3, 4, 5, 6, 7], [0, 2, 1, 9, 8]], device=DEVICE)
    slots = torch.full((2, 4, keys, 12, size), 9.0, device=DEVICE).to(dtype)
    cache = slots[0, 1:3], slots[1, 1:3]  # the second and third slot
    found = head_inputs(vectors, HeadShape(queries, keys, size), norms, (cos, sin), columns, cache, 1e-6)

    exact = vectors[..., : (queries + 2 * keys) * size].double().view(batch, nodes, -1, size)
    query, key, value = exact.split((queries, keys, keys), 2)
    if norms is not None:
        query, key = (rms_norm(t, norm.double(), 1e-6) for t, norm in zip((query, key), norms, strict=True))
    wanted = [rotate(t, cos.double(), sin.double()) for t in (query, key)]
    assert error(found, wanted[0]) < tolerance(dtype)
    for row in range(batch):
        for held, sent in ((cache[0], wanted[1]), (cache[1], value)):
            assert error(held[row, :, columns[row]].transpose(0, 1), sent[row]) < tolerance(dtype)
    untouched = torch.ones(12, dtype=torch.bool, device=DEVICE)
    untouched[columns[0]] = False
    assert bool((slots[:, 1][:, :, untouched] == 9).all() & (slots[:, [0, 3]] == 9).all())
