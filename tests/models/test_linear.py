"""Packed linear layers: equal to the plain ones, and row by row independent of the number of rows."""

import pytest
import torch

from outrider.models.linear import DenseLinear, Half16Linear, PackedLinear, can_pack, pack

CPU = torch.device("cpu")
SMOLLM2 = [(960, 576), (576, 576), (3072, 576), (576, 1536), (2048, 576)]
packed_only = pytest.mark.skipif(not can_pack(), reason="needs oneDNN's packed layers on x86-64")


def layer(shape: tuple[int, int], seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(shape, generator=generator) / shape[1] ** 0.5
    return weight, torch.randn(shape[0], generator=generator), torch.randn(64, shape[1], generator=generator)


avx2_only = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX2",
    reason="holds for oneDNN's AVX2 kernels; its AVX-512 ones choose another blocking for few rows",
)


@packed_only
@avx2_only
@pytest.mark.parametrize("shape", SMOLLM2)
def test_a_packed_row_is_the_same_to_the_last_bit_for_any_number_of_rows(shape) -> None:
    weight, bias, rows = layer(shape, 1)
    packed = PackedLinear(weight, bias)
    together = packed(rows)
    assert [n for n in range(1, 64) if not torch.equal(packed(rows[:n].contiguous()), together[:n])] == []


@packed_only
@pytest.mark.parametrize("with_bias", [True, False])
def test_a_packed_layer_equals_the_plain_one(with_bias) -> None:
    weight, bias, rows = layer((96, 160), 2)
    bias = bias if with_bias else None
    torch.testing.assert_close(PackedLinear(weight, bias)(rows), DenseLinear(weight, bias)(rows))


@packed_only
@pytest.mark.parametrize("with_bias", [True, False])
def test_fp16_weights_differ_from_fp32_by_their_rounding_alone(with_bias) -> None:
    weight, bias, rows = layer((96, 160), 3)
    bias = bias if with_bias else None
    rounded = DenseLinear(weight.half().float(), bias)(rows)
    torch.testing.assert_close(Half16Linear(weight, bias)(rows), rounded, rtol=1e-5, atol=1e-5)


def test_pack_chooses_by_dtype() -> None:
    weight, bias, _ = layer((16, 32), 4)
    assert isinstance(pack(weight, bias, torch.float16, CPU), Half16Linear)
    assert isinstance(pack(weight, bias, torch.bfloat16, CPU), DenseLinear)
    expected = PackedLinear if can_pack() else DenseLinear
    assert isinstance(pack(weight, bias, torch.float32, CPU), expected)
