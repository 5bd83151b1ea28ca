"""Partly rotated heads and rounded numbers, against the plain form of each."""

import pytest
import torch
from dflash.pair import DRAFTER

from outrider.doctor.ablation.fault import Damage
from outrider.doctor.ablation.network import _Partial
from outrider.doctor.ablation.rounding import GROUP, LEVELS, rounded
from outrider.doctor.ablation.weights import damaged_reader
from outrider.models.layers import rotate
from outrider.models.rope import Angles

SIZE = DRAFTER.head_dim


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_reordered_heads_score_as_heads_of_which_the_first_part_is_rotated(share):
    generator = torch.Generator().manual_seed(0)
    plain = torch.randn(2, SIZE, generator=generator, dtype=torch.float64)
    read = damaged_reader(lambda _: plain[0].float(), Damage(rotary_share=share), DRAFTER, None)
    other = damaged_reader(lambda _: plain[1].float(), Damage(rotary_share=share), DRAFTER, None)
    positions = torch.tensor([[3, 11]])
    partial = _Partial(DRAFTER, share, torch.device("cpu"))(positions, torch.float32)
    query, key = (one("layers.0.self_attn.q_norm.weight").view(1, 1, 1, SIZE) for one in (read, other))
    found = rotated_product(query, key, *partial)
    part = int(SIZE * share)
    angles = Angles(DRAFTER.rope, part, torch.device("cpu"))(positions, torch.float32)
    expected = rotated_product(*(half[:part].float().view(1, 1, 1, part) for half in plain), *angles)
    expected += (plain[0, part:] @ plain[1, part:]).float()
    torch.testing.assert_close(found, expected)


def rotated_product(query, key, cos, sin) -> torch.Tensor:
    turned = [rotate(one, cos[:, at : at + 1], sin[:, at : at + 1]) for at, one in enumerate((query, key))]
    return (turned[0] * turned[1]).sum()


@pytest.mark.parametrize("form", ["int8", "int4"])
def test_whole_numbers_are_off_by_half_a_step_of_their_group_at_most(form):
    values = torch.randn(4, 3 * GROUP, generator=torch.Generator().manual_seed(1)) * torch.arange(1, 3 * GROUP + 1)
    found = rounded(values, form)
    steps = values.view(4, 3, GROUP).abs().amax(-1, keepdim=True) / LEVELS[form]
    assert ((found - values).view(4, 3, GROUP).abs() <= steps / 2 * 1.001).all()
    torch.testing.assert_close(rounded(found, form), found)


@pytest.mark.parametrize(("form", "bits"), [("bf16", 8), ("fp16", 11), ("fp8", 4)])
def test_floats_keep_as_many_digits_as_their_format(form, bits):
    values = 1 + torch.rand(256, generator=torch.Generator().manual_seed(2))
    error = ((rounded(values, form) - values) / values).abs().max()
    assert 2.0**-bits / 4 < error <= 2.0**-bits * 1.001
    assert rounded(values, form).dtype == values.dtype


def test_rows_of_no_whole_groups_have_one_scale():
    values = torch.tensor([[7.0, 3.4, -1.2]])
    assert rounded(values, "int4").tolist() == [[7.0, 3.0, -1.0]]
