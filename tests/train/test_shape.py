"""A drafter's shape from its target, and the token for its masked slots."""

from dataclasses import replace

import numpy as np
import pytest
from dflash.pair import TARGET

from outrider.errors import UsageError
from outrider.models.dflash.config import LayerMask
from outrider.models.dflash.formats.writing import zlab_config
from outrider.train.mask_token import Words
from outrider.train.shape import Shape, default_taps, drafter_config

DEEP = replace(TARGET, num_layers=30, windows=(None,) * 30)


def test_a_drafter_takes_its_sizes_from_the_target():
    config = drafter_config(DEEP, Shape(window=128), 7)
    assert (config.hidden_size, config.num_heads, config.num_kv_heads) == (32, 2, 1)
    assert (config.head_dim, config.intermediate_size, config.vocab_size) == (16, 64, DEEP.vocab_size)
    assert config.layers == (LayerMask(128, causal=True),) * 5
    assert (config.mask_token, config.block_size, config.num_target_layers) == (7, 16, 30)
    assert zlab_config(config)["layer_types"] == ["sliding_attention"] * 5


def test_each_letter_is_a_layer():
    config = drafter_config(DEEP, Shape(layers="safc", window=64, heads=4, kv_heads=2, intermediate_size=48), 7)
    expected = [LayerMask(64, causal=True), LayerMask(64, causal=False)]
    assert config.layers == (*expected, LayerMask(None, causal=False), LayerMask(None, causal=True))
    assert (config.num_heads, config.num_kv_heads, config.intermediate_size) == (4, 2, 48)


@pytest.mark.parametrize(
    ("depth", "count", "taps"),
    [
        (30, 5, (1, 8, 14, 20, 27)),
        (36, 5, (1, 9, 17, 25, 33)),
        (64, 5, (1, 16, 31, 46, 61)),
        (4, 2, (1,)),
        (3, 5, (1,)),
    ],
)
def test_taps_are_spread_from_the_second_to_the_third_last_block(depth, count, taps):
    assert default_taps(depth, count)[0] == taps[0]
    if depth > 4:
        assert default_taps(depth, count) == taps
    assert all(tap < depth - 1 for tap in default_taps(depth, count))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape(layers="sxs"), "expected one letter each"),
        (Shape(layers=""), "expected one letter each"),
        (Shape(window=8), "does not hold a block of 16"),
        (Shape(taps=(1, 29)), "from 0 to 28"),
        (Shape(taps=(3, 2)), "rising"),
        (Shape(block_size=1), "at least 2"),
        (Shape(heads=3, kv_heads=2), "share 2 key/value heads"),
    ],
)
def test_a_shape_that_contradicts_itself_is_refused(shape, said):
    with pytest.raises(UsageError, match=said):
        drafter_config(DEEP, shape, 7)


def words(counts, norms=None, stops=()) -> Words:
    return Words(np.array(counts), np.array(norms or [1.0] * len(counts)), frozenset(stops))


def test_the_mask_token_is_one_that_no_text_has_and_that_is_something():
    assert words([5, 0, 2, 0], norms=[1, 0.01, 1, 1]).mask_token() == 3
    assert words([0, 0, 2], stops=[0]).mask_token() == 1
    with pytest.raises(UsageError, match="Every usable token occurs"):
        words([1, 0, 2], stops=[1]).mask_token()


def test_what_speaks_against_a_mask_token_is_said():
    made = words([5, 0, 2, 0], norms=[1, 0.01, 1, 1], stops=[2])
    assert made.trouble(3) is None
    assert "next to nothing" in made.trouble(1)
    assert "ends texts" in made.trouble(2)
    assert "outside" in made.trouble(4)
