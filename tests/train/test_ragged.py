"""Attention over rows of different lengths: the kernel equals the plain one.

Runs on a GPU, and with TRITON_INTERPRET=1 wherever Triton is installed.
"""

import os
from importlib.util import find_spec

import pytest
import torch

from outrider.train.ragged import can_run, mix_plainly, mix_ragged

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and find_spec("triton") is not None
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# The interpreter multiplies bfloat16 as if its bits were integers.
DTYPES = [torch.float32, torch.float16] if INTERPRETED else [torch.float32, torch.bfloat16]


def test_the_kernel_is_for_gpus():
    assert not can_run(torch.device("cpu"))


@pytest.mark.skipif(not (INTERPRETED or can_run(DEVICE)), reason="needs a GPU, or Triton and TRITON_INTERPRET=1")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("queries", "keys", "size"), [(9, 3, 64), (4, 4, 24), (8, 1, 128)])
@pytest.mark.parametrize("window", [None, 9, 100])
def test_the_kernel_equals_plain_attention(dtype, queries, keys, size, window):
    generator = torch.Generator().manual_seed(0)
    cache = torch.randn(2, 5, keys, 300, size, generator=generator).to(DEVICE, dtype)
    stacked = torch.randn(5, 1, queries + keys, size, generator=generator).to(DEVICE, dtype)
    query = stacked.split_with_sizes((queries, keys), 2)[0].transpose(1, 2)  # as a pass has it: not contiguous
    lengths = torch.tensor([0, 63, 64, 130, 299], device=DEVICE)
    mixed = mix_ragged(query, cache[0], cache[1], lengths, window=window)
    expected = mix_plainly(query.float(), cache[0].float(), cache[1].float(), lengths, window=window)
    tolerance = 2e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(mixed.float(), expected, atol=tolerance, rtol=tolerance)
