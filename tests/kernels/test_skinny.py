"""Products of few rows: the kernel against the plain product."""

import pytest
import torch
from kernels.on_device import DEVICE, DTYPES, HALF, error, needs_triton, tolerance

from outrider.kernels.skinny import Plan, dequantised, plan, skinny, skinny_plainly

pytestmark = needs_triton


def drawn(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens", [1, 5, 64, 70])
@pytest.mark.parametrize(
    ("outputs", "inputs", "cut"),
    [(96, 128, None), (80, 200, Plan(64, 64, 3)), (40, 48, Plan(16, 16, 8)), (64, 256, Plan(32, 64, 2))],
)
def test_equals_the_plain_product(dtype, tokens, outputs, inputs, cut):
    rows, weight, bias = drawn(tokens, inputs), drawn(outputs, inputs, seed=1), drawn(outputs, seed=2)
    for offset in (None, bias):
        found = skinny(*(t if t is None else t.to(dtype) for t in (rows, weight, offset)), cut=cut)
        assert found.dtype == dtype
        assert error(found, skinny_plainly(rows, weight, offset)) < tolerance(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens", [1, 17])
def test_gates(dtype, tokens):
    rows, weight = drawn(tokens, 96), drawn(160, 96, seed=1) / 8
    found = skinny(rows.to(dtype), weight.to(dtype), gated=True)
    assert error(found, skinny_plainly(rows, weight, gated=True)) < tolerance(dtype)


@pytest.mark.parametrize("tokens", [1, 20])
@pytest.mark.parametrize("gated", [False, True])
def test_float8_weights_with_a_scale_a_block(tokens, gated):
    rows, outputs, inputs = drawn(tokens, 300).to(HALF), 256, 300
    weight = drawn(outputs, inputs, seed=1).clamp(-3, 3).to(torch.float8_e4m3fn)
    scale = drawn(2, 3, seed=2).abs() + 0.1
    wanted = skinny_plainly(rows.float(), dequantised(weight, scale), gated=gated)
    assert error(skinny(rows, weight, scale=scale, gated=gated), wanted) < tolerance(HALF)


def test_writes_beside_what_is_there():
    rows, weight = drawn(3, 32), drawn(20, 32, seed=1)
    whole = torch.full((3, 30), 7.0, device=DEVICE)
    skinny(rows, weight, into=whole[:, 4:24])
    assert error(whole[:, 4:24], rows @ weight.T) < tolerance(torch.float32)
    assert bool((whole[:, :4] == 7).all() & (whole[:, 24:] == 7).all())


def test_small_matrices_are_cut_in_pieces():
    cuts = [plan(outputs, 5120, 1, DEVICE) for outputs in (512, 34816)]
    assert cuts[0].pieces >= cuts[1].pieces >= 1
