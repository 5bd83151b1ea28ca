"""The chunked delta rule against the recurrence it stands for."""

from itertools import pairwise

import pytest
import torch
from kernels.recurrence import random_inputs, random_state, recur

from outrider.kernels.gdn_chunk import chunk


@pytest.mark.parametrize("tokens", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize(("strongest", "alike"), [(3.0, 0.0), (1e-3, 2.0), (60.0, 0.5)])
def test_equals_the_recurrence_from_any_state(tokens: int, strongest: float, alike: float) -> None:
    inputs = random_inputs(tokens, strongest=strongest, alike=alike, seed=tokens)
    state = random_state(inputs)
    out, after = chunk(*inputs, state)
    wanted_out, wanted_after = recur(inputs, state)
    torch.testing.assert_close(out, wanted_out, rtol=0, atol=1e-11)
    torch.testing.assert_close(after, wanted_after, rtol=0, atol=1e-11)


def test_starts_from_nothing() -> None:
    inputs = random_inputs(70)
    out, after = chunk(*inputs)
    wanted_out, wanted_after = recur(inputs, torch.zeros_like(random_state(inputs)))
    torch.testing.assert_close(out, wanted_out, rtol=0, atol=1e-11)
    torch.testing.assert_close(after, wanted_after, rtol=0, atol=1e-11)


def test_goes_on_where_it_stopped() -> None:
    inputs = random_inputs(100)
    whole, last = chunk(*inputs)
    first, between = chunk(*inputs.at(slice(0, 37)))
    second, after = chunk(*inputs.at(slice(37, None)), between)
    torch.testing.assert_close(torch.cat((first, second), 1), whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(after, last, rtol=0, atol=1e-12)


def test_half_precision_is_computed_in_single() -> None:
    inputs = random_inputs(20).to(torch.bfloat16)
    out, after = chunk(*inputs)
    wanted, _ = chunk(*inputs.to(torch.float32))
    assert out.dtype == after.dtype == torch.float32
    torch.testing.assert_close(out, wanted)


def test_gradients_equal_those_of_the_recurrence() -> None:
    inputs = random_inputs(70, batch=1, heads=1, group=2, sizes=(4, 3))
    state = random_state(inputs)

    def gradients(rule: object) -> list[torch.Tensor]:
        leaves = [tensor.clone().requires_grad_() for tensor in (*inputs, state)]
        out, after = rule(leaves)  # type: ignore[operator]
        (out.square().sum() + after.sin().sum()).backward()
        return [leaf.grad for leaf in leaves if leaf.grad is not None]

    ours = gradients(lambda leaves: chunk(*leaves))
    wanted = gradients(lambda leaves: recur(type(inputs)(*leaves[:5]), leaves[5]))
    assert len(ours) == len(wanted) == len(inputs) + 1
    for found, expected in zip(ours, wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_strong_decay_has_finite_gradients() -> None:
    inputs = random_inputs(64, strongest=200.0).to(torch.float32)
    leaves = [tensor.requires_grad_() for tensor in inputs]
    chunk(*leaves)[0].sum().backward()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


@pytest.mark.parametrize("cuts", [(5, 9), (64, 130), (1, 2, 63, 65, 199)])
def test_documents_of_a_row_know_nothing_of_each_other(cuts: tuple[int, ...]) -> None:
    inputs = random_inputs(200)
    starts = torch.zeros(2, 200, dtype=torch.bool)
    starts[:, list(cuts)] = True
    state = random_state(inputs)
    out, after = chunk(*inputs, state, starts)
    bounds = [0, *cuts, 200]
    for start, end in pairwise(bounds):
        before = state if start == 0 else torch.zeros_like(state)
        wanted, last = recur(inputs.at(slice(start, end)), before)
        torch.testing.assert_close(out[:, start:end], wanted, rtol=0, atol=1e-11)
    torch.testing.assert_close(after, last, rtol=0, atol=1e-11)
