"""The fused sum and norm against the layers' own."""

import pytest
import torch
from kernels.on_device import DEVICE, DTYPES, HALF, error, needs_triton, tolerance

from outrider.kernels.add_norm import add_norm
from outrider.models.layers import rms_norm

pytestmark = needs_triton


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [40, 512])
def test_equals_sum_then_norm(dtype, width):
    torch.manual_seed(0)
    update, hidden = torch.randn(2, 2, 3, width, device=DEVICE).to(dtype).unbind(0)
    weight = 1 + torch.randn(width, device=DEVICE)
    total, normed = add_norm(update, hidden, weight, 1e-6)
    assert torch.equal(total, update + hidden)
    assert error(normed, rms_norm((update + hidden).float(), weight, 1e-6)) < tolerance(dtype)


def test_without_a_sum_the_vectors_stay():
    update = torch.randn(3, 48, device=DEVICE).to(HALF)
    weight = torch.ones(48, device=DEVICE)
    total, normed = add_norm(update, None, weight, 1e-6)
    assert total is update
    assert error(normed, rms_norm(update.float(), weight, 1e-6)) < tolerance(HALF)
