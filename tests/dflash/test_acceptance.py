"""Acceptance on a trained pair: the drafter read as it was trained wins over every wrong reading.

Acceptance is the weak test, ``test_network.py`` is the strong one. What is shown here is that engine, drafter and
network together bring about what training promised.
"""

from dataclasses import replace

import pytest
import torch
from dflash.pair import BLOCK, DRAFTER, LENGTH, WINDOW, Pair, greedy_texts
from dflash.rounds import MOST, Displaced, Edited, acceptance, drafter_of, prompts_of, run
from torch import Tensor
from torch.nn.functional import cross_entropy

from outrider.acceptance import Acceptance
from outrider.errors import UsageError
from outrider.models.dflash.config import LayerMask
from outrider.models.dflash.network import DFlash

PROMPTS = prompts_of(96, 3, 5, 9, 20, 32, 45)
FEW = PROMPTS[::4] + PROMPTS[1::4]  # for faults that cost a whole token a round and more
LONG = prompts_of(24, 3 * WINDOW, 5 * WINDOW, 8 * WINDOW)


@pytest.fixture(scope="module")
def healthy(pair: Pair) -> Acceptance:
    return acceptance(run(pair, pair.network, PROMPTS))


@pytest.fixture(scope="module")
def healthy_long(pair: Pair) -> Acceptance:
    return acceptance(run(pair, pair.network, LONG))


def test_the_pair_is_trained_well_enough_to_tell_anything(healthy):
    assert healthy.num_rounds >= 500
    assert healthy.length > 2.5
    assert {r.accepted for r in healthy.rounds} == set(range(BLOCK))


@pytest.mark.parametrize("shift", [-1, 1])
def test_taps_one_block_off_lose(pair, healthy, shift):
    shifted = pair.network.variant(replace(DRAFTER, taps=tuple(tap + shift for tap in DRAFTER.taps)))
    found = acceptance(run(pair, shifted, PROMPTS))
    assert found.num_rounds >= 500
    assert found.length < healthy.length


def test_taps_in_another_order_lose(pair, healthy):
    found = acceptance(run(pair, pair.network.variant(replace(DRAFTER, taps=DRAFTER.taps[::-1])), FEW))
    assert found.length < healthy.length - 1


def test_without_features_little_is_left(pair, healthy):
    found = acceptance(run(pair, Edited(pair.network, torch.zeros_like), FEW))
    assert found.length < healthy.length - 1


def test_features_of_other_tokens_lose(pair, healthy):
    late = Edited(pair.network, lambda features_BNF: features_BNF.roll(1, 1))
    assert acceptance(run(pair, late, FEW)).length < healthy.length - 1


@pytest.mark.parametrize("places", [-1, 1])
def test_a_block_one_place_off_loses(pair, healthy, places):
    found = acceptance(run(pair, Displaced(pair.network, places), PROMPTS))
    assert found.length < healthy.length - 0.2


def test_a_wrong_mask_token_loses(pair, healthy):
    found = acceptance(run(pair, pair.network.variant(replace(DRAFTER, mask_token=0)), FEW))
    assert found.length < healthy.length - 1


WRONG_WINDOWS = {
    "windows ignored": tuple(replace(mask, window=None) for mask in DRAFTER.layers),
    "all full": (LayerMask(None, causal=False),) * 3,
    "half the window": tuple(replace(mask, window=mask.window and mask.window // 2) for mask in DRAFTER.layers),
}


@pytest.mark.parametrize("masks", WRONG_WINDOWS)
def test_wrong_windows_lose_at_contexts_beyond_twice_the_window(pair, healthy_long, masks):
    found = acceptance(run(pair, pair.network.variant(replace(DRAFTER, layers=WRONG_WINDOWS[masks])), LONG))
    assert found.length < healthy_long.length - 1


def test_acceptance_does_not_fall_with_the_context(healthy, healthy_long):
    assert healthy_long.length > healthy.length - 0.5


# Causality moves acceptance by less than a fraction of a token, so it is judged by what the drafter finds likely.
WRONG_MASKS = WRONG_WINDOWS | {
    "causality inverted": tuple(replace(mask, causal=not mask.causal) for mask in DRAFTER.layers),
    "all causal": tuple(replace(mask, causal=True) for mask in DRAFTER.layers),
    "none causal": tuple(replace(mask, causal=False) for mask in DRAFTER.layers),
    "all windowed": tuple(replace(mask, window=WINDOW) for mask in DRAFTER.layers),
}


@pytest.fixture(scope="module")
def texts(pair: Pair) -> tuple[Tensor, Tensor]:
    return greedy_texts(pair.target_tensors, torch.Generator().manual_seed(3), 48)


def surprise(network: DFlash, texts_ST: Tensor, features_STF: Tensor) -> float:
    """Mean negative log-likelihood of what follows each place beyond twice the window."""
    rows, cache = slice(0, len(texts_ST)), network.new_cache(slots=len(texts_ST), max_len=LENGTH)
    losses, start = [], 0
    for place in range(2 * WINDOW + 1, LENGTH - MOST):
        remembered, known = (torch.full((len(texts_ST),), end) for end in (start, place))
        network.remember(features_STF[:, start:place], cache, rows, remembered, span=place)
        draft = network.draft(texts_ST[:, place], cache, rows, known, span=place + BLOCK)
        follows = texts_ST[:, place + 1 : place + BLOCK]
        losses.append(cross_entropy(draft.logits_BKV.flatten(0, 1), follows.flatten()))
        start = place
    return float(torch.stack(losses).mean())


@pytest.mark.parametrize("masks", WRONG_MASKS)
def test_the_text_is_likelier_under_the_configured_masks_than_under_any_other(pair, texts, masks):
    other = pair.network.variant(replace(DRAFTER, layers=WRONG_MASKS[masks]))
    assert surprise(pair.network, *texts) < surprise(other, *texts)


def test_no_round_drafts_a_whole_block(pair, healthy):
    assert {r.drafted for r in healthy.rounds} <= set(range(MOST + 1))
    with pytest.raises(UsageError, match=f"at most {MOST}"):
        drafter_of(pair.network, tokens=BLOCK)


def test_a_batch_of_eight_accepts_what_each_text_accepts_alone(pair):
    together = {sequence.prompt: sequence for sequence in run(pair, pair.network, LONG)}
    for sequence in run(pair, pair.network, LONG, slots=1):
        assert sequence.rounds == together[sequence.prompt].rounds
        assert sequence.output == together[sequence.prompt].output
