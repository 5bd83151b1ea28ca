"""A fault anywhere in the network moves the fixtures' logits far more than the tolerance they are compared within.

Without this, equality of the network and the reference could mean that the fixtures do not look.
"""

from dataclasses import replace

import pytest
import torch
from dflash import reference
from dflash.random_drafter import CAUSAL, WINDOW, config_of, random_drafter, random_features, random_target
from dflash.reference import Tensors, draft_logits
from torch import Tensor

from outrider.models.config import Rope
from outrider.models.dflash.config import DFlashConfig, LayerMask

CONTEXT, ANCHOR = 4 * WINDOW, 5
VISIBLE = 0.01  # of the logits' spread: ten thousand times what equality allows
CONFIG = config_of("biases", sinks=True, soft_cap=20.0, output_multiplier=0.7, embedding_scale=1.5, value_scale=0.8)
FEATURES = random_features(CONFIG, CONTEXT)
NORMS = [
    *("hidden_norm", "norm", "layers.1.input_layernorm", "layers.1.post_attention_layernorm"),
    *("layers.1.self_attn.q_norm", "layers.1.self_attn.k_norm"),
]


def logits(
    config: DFlashConfig = CONFIG, features_TF: Tensor = FEATURES, change=None, *, anchor: int = ANCHOR
) -> Tensor:
    """The reference's logits after a change of the tensors."""
    _, embed, head = random_target(config)
    tensors = random_drafter(CONFIG)
    if change is not None:
        change(tensors)
    return draft_logits(config, tensors, embed, head, features_TF, anchor)


def assert_moved(faulty: Tensor) -> None:
    right = logits()
    assert float((faulty - right).abs().max()) > VISIBLE * float(right.std())


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_whose_weight_is_taken_for_one_shows(name):
    assert_moved(logits(change=lambda tensors: tensors[f"{name}.weight"].fill_(1)))


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_left_out_shows(name, monkeypatch):
    left_out, right = random_drafter(CONFIG)[f"{name}.weight"], reference.rms

    def without(values: Tensor, weight: Tensor, eps: float) -> Tensor:
        return values if torch.equal(weight, left_out) else right(values, weight, eps)

    monkeypatch.setattr(reference, "rms", without)
    faulty = logits()
    monkeypatch.undo()
    assert_moved(faulty)


def test_context_taken_through_the_layers_norm_shows(monkeypatch):
    right = reference.draft_layer

    def faulty(config, parts, mask, axis, *, context_STH, hidden_SQH):
        context_STH = reference.rms(context_STH, parts["input_layernorm.weight"], config.norm_eps)
        return right(config, parts, mask, axis, context_STH=context_STH, hidden_SQH=hidden_SQH)

    monkeypatch.setattr(reference, "draft_layer", faulty)
    found = logits()
    monkeypatch.undo()
    assert_moved(found)


def test_a_context_one_token_short_shows():
    assert_moved(logits(features_TF=FEATURES[:-1]))


def test_permuted_taps_show():
    first, second, third = FEATURES.chunk(3, -1)
    assert_moved(logits(features_TF=torch.cat((second, first, third), -1)))
    assert_moved(logits(features_TF=torch.cat((first, third, second), -1)))


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_block_one_place_off_shows(shift, monkeypatch):
    right = reference.hidden_of_blocks

    def faulty(config, tensors, embed, features_STF, *, anchors_SP, places_SP):
        return right(config, tensors, embed, features_STF, anchors_SP=anchors_SP, places_SP=places_SP + shift)

    monkeypatch.setattr(reference, "hidden_of_blocks", faulty)
    found = logits()
    monkeypatch.undo()
    assert_moved(found)


def test_neighbouring_coordinates_turned_together_show(monkeypatch):
    def interleaved(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        even, odd = heads[..., ::2], heads[..., 1::2]
        half = heads.shape[-1] // 2
        cos, sin = cos[..., :half], sin[..., :half]
        return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)

    monkeypatch.setattr(reference, "rotated", interleaved)
    found = logits()
    monkeypatch.undo()
    assert_moved(found)


def _zero(*names: str):
    def change(tensors: Tensors) -> None:
        for name in names:
            tensors[name].zero_()

    return change


@pytest.mark.parametrize("part", ["q_proj", "v_proj", "o_proj"])
def test_a_bias_left_out_shows(part):
    assert_moved(logits(change=_zero(f"layers.2.self_attn.{part}.bias")))


def test_the_bias_of_keys_left_out_shows_through_their_norm():
    assert_moved(logits(change=_zero("layers.2.self_attn.k_proj.bias")))


def test_a_sink_taken_for_zero_shows():
    assert_moved(logits(change=_zero("layers.0.self_attn.sinks")))


WRONG_CONFIGS = {
    "windows ignored": {"layers": tuple(replace(mask, window=None) for mask in CONFIG.layers)},
    "a window one smaller": {"layers": (replace(CAUSAL, window=WINDOW - 1), *CONFIG.layers[1:])},
    "a window one larger": {"layers": (replace(CAUSAL, window=WINDOW + 1), *CONFIG.layers[1:])},
    "sliding layers not causal": {"layers": (LayerMask(WINDOW, causal=False), *CONFIG.layers[1:])},
    "full layers causal": {"layers": (*CONFIG.layers[:2], LayerMask(None, causal=True))},
    "masks in another order": {"layers": CONFIG.layers[::-1]},
    "mask token": {"mask_token": 0},
    "no sinks": {"sinks": False},
    "rope base": {"rope": Rope(1e4)},
    "rope kind": {"rope": Rope(5e3, "linear", {"factor": 2.0})},
    "eps": {"norm_eps": 0.05},
    "block size": {"block_size": CONFIG.block_size + 1},
    "embedding scale": {"embedding_scale": 1.0},
    "output multiplier": {"output_multiplier": 1.0},
    "soft cap": {"soft_cap": None},
    "value scale": {"value_scale": 1.0},
}


@pytest.mark.parametrize("name", WRONG_CONFIGS)
def test_a_wrong_key_of_the_config_shows(name):
    faulty = logits(replace(CONFIG, **WRONG_CONFIGS[name]))
    assert_moved(faulty[: CONFIG.max_tokens])


def test_another_anchor_shows():
    assert_moved(logits(anchor=ANCHOR + 1))


@pytest.mark.parametrize("part", ["attention_conv", "mlp_conv"])
@pytest.mark.parametrize("side", [0, 1])
def test_each_side_of_each_convolution_shows(part, side):
    config = config_of("dflash2")
    _, embed, head = random_target(config)
    tensors = random_drafter(config)
    right = draft_logits(config, tensors, embed, head, FEATURES, ANCHOR)
    tensors[f"layers.1.{part}.base_kernel"][side, 1] = 0
    faulty = draft_logits(config, tensors, embed, head, FEATURES, ANCHOR)
    assert float((faulty - right).abs().max()) > VISIBLE * float(right.std())
