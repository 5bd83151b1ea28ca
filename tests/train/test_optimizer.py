"""Learning rate, optimizers, and the mean over steps."""

from copy import deepcopy
from itertools import pairwise

import pytest
import torch
from dflash.pair import DRAFTER, TARGET
from dflash.random_drafter import config_of

from outrider.models.tiny import random_tensors
from outrider.train.first_weights import fit_to_features, fit_to_head, fresh_weights
from outrider.train.network import DraftNetwork, Tables
from outrider.train.optimizer import Average, Optimizers, learning_rate
from outrider.train.options import TrainOptions


def network() -> DraftNetwork:
    read = random_tensors(TARGET)
    made = DraftNetwork(DRAFTER, Tables(read("model.embed_tokens.weight"), read("lm_head.weight")))
    made.take(fresh_weights(DRAFTER, 0))
    return made


def test_the_rate_rises_in_a_line_and_falls_along_a_cosine():
    options = TrainOptions(steps=100, lr=1.0, warm_up=0.1)
    rates = [learning_rate(options, step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert all(later < earlier for earlier, later in pairwise(rates[9:]))
    assert rates[54] == pytest.approx(0.5, abs=0.02)
    assert 0 < rates[-1] < 0.002


@pytest.mark.parametrize("warm_up", [0.0, 1.0])
def test_a_run_may_be_all_or_no_warm_up(warm_up):
    options = TrainOptions(steps=4, lr=1.0, warm_up=warm_up)
    rates = [learning_rate(options, step, 4) for step in range(4)]
    assert all(0 < rate <= 1 for rate in rates)
    assert (rates == sorted(rates)) == (warm_up == 1.0)


def test_fresh_weights_keep_the_size_of_what_flows_and_start_norms_at_one():
    made = fresh_weights(config_of("value scale, biases, sinks"), 3)
    assert (made["norm.weight"] == 1).all()
    assert (made["layers.0.self_attn.sinks"] == 0).all()
    assert (made["layers.0.self_attn.q_proj.bias"] == 0).all()
    assert float(made["layers.1.mlp.up_proj.weight"].std()) == pytest.approx(32**-0.5, rel=0.1)
    assert float(made["layers.1.mlp.down_proj.weight"].std()) == pytest.approx((6 * 40) ** -0.5, rel=0.1)
    again, other = fresh_weights(config_of("plain"), 3), fresh_weights(config_of("plain"), 4)
    assert torch.equal(again["fc.weight"], fresh_weights(config_of("plain"), 3)["fc.weight"])
    assert not torch.equal(again["fc.weight"], other["fc.weight"])


def test_every_feature_counts_alike_at_first_and_guesses_are_nearly_even():
    generator = torch.Generator().manual_seed(0)
    scales = torch.logspace(0, 3, 64)
    features, head = torch.randn(400, 64, generator=generator) * scales, 5 * torch.randn(300, 32, generator=generator)
    features[0] *= 1000  # as a text's first token
    made = fresh_weights(config_of("plain", taps=(0, 1)), 0)
    before, norm = made["fc.weight"].clone(), made["norm.weight"].clone()
    fit_to_features(made, features)
    fit_to_head(made, head)
    torch.testing.assert_close(made["fc.weight"] * scales, before, rtol=0.2, atol=0)
    normed = torch.nn.functional.normalize(torch.randn(50, 32, generator=generator), dim=1) * 32**0.5
    assert float(((normed * made["norm.weight"]) @ head.T).std()) == pytest.approx(1, rel=0.1)
    fit_to_head(made, 0.01 * head)
    assert float(made["norm.weight"].mean()) == pytest.approx(
        float(norm.mean()) / float(head.norm(dim=1).square().mean().sqrt()), rel=0.01
    )


def pull(optimizers: Optimizers, made: DraftNetwork, *, rate: float = 0.01, scale: float = 1.0) -> float:
    """A step down the sum of all squares."""
    sum(parameter.square().sum() for parameter in made.parameters()).backward()
    return float(optimizers.step(rate, torch.tensor(scale)))


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_both_optimizers_walk_downhill_and_go_on_from_their_state(kind):
    options = TrainOptions(steps=1, optimizer=kind, weight_decay=0.0)
    made, other = network(), network()
    one, two = Optimizers(made, options), Optimizers(other, options)
    before = {name: tensor.clone() for name, tensor in made.weights().items()}
    pull(one, made)
    two.restore(deepcopy(one.state()))
    other.take(made.weights())
    pull(one, made)
    pull(two, other)
    for name, tensor in made.weights().items():
        assert tensor.norm() < before[name].norm()
        assert torch.equal(tensor, other.weights()[name])


def test_gradients_are_scaled_then_cut():
    made = network()
    optimizers = Optimizers(made, TrainOptions(steps=1, clip=0.5))
    length = float(torch.stack([parameter.detach().norm() for parameter in made.parameters()]).norm())
    assert pull(optimizers, made, scale=0.25) == pytest.approx(2 * length * 0.25, rel=1e-5)


def test_only_matrices_decay():
    made = network()
    before = {name: tensor.clone() for name, tensor in made.weights().items()}
    optimizers = Optimizers(made, TrainOptions(steps=1, weight_decay=0.5))
    for parameter in made.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizers.step(0.1, torch.tensor(1.0))
    for name, tensor in made.weights().items():
        expected = before[name] * (0.95 if tensor.dim() == 2 else 1.0)
        torch.testing.assert_close(tensor, expected)


def test_the_mean_follows_the_weights_and_lends_itself_to_the_network():
    made = network()
    average = Average(made, decay=0.5)
    first = made.weights()["fc.weight"].clone()
    made.take({name: tensor + 1 for name, tensor in made.weights().items()})
    for step in range(1, 4):
        average.update(step)
    decays = [(1 + step) / (10 + step) for step in range(1, 4)]
    left = decays[0] * decays[1] * decays[2]
    expected = left * first + (1 - left) * (first + 1)
    torch.testing.assert_close(average.tensors()["fc.weight"], expected)
    now = made.weights()["fc.weight"].clone()
    with average.in_place():
        torch.testing.assert_close(made.weights()["fc.weight"], expected)
    assert torch.equal(made.weights()["fc.weight"], now)
