"""The best words by the kernels against a stable sort."""

import pytest
import torch
from kernels.on_device import DEVICE, DTYPES, needs_triton

from outrider.kernels.top_words import top_words, top_words_plainly

pytestmark = needs_triton


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [5, 4096, 9000])
@pytest.mark.parametrize("count", [1, 5])
def test_equals_a_stable_sort_ties_included(dtype, size, count):
    torch.manual_seed(0)
    logits = torch.randn(3, size, device=DEVICE).mul(4).round().div(4).to(dtype)
    found, wanted = top_words(logits, count), top_words_plainly(logits, count)
    assert torch.equal(found.values_RK, wanted.values_RK)
    assert torch.equal(found.words_RK, wanted.words_RK)
    torch.testing.assert_close(found.total_R, wanted.total_R)
