"""Replays against the engine, which measures the same rounds by decoding, and against the dense reference."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from dflash import reference
from dflash.pair import Pair
from dflash.random_drafter import FULL, config_of, network_of, random_drafter, random_target
from dflash.rounds import MOST, prompts_of
from engine.running import engine_of, finish

from outrider.drafters.dflash import DFlashDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.params import SamplingParams
from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.models.dflash.network import DFlash
from outrider.replay import Recording, measure, record, recording, replay

PROMPTS = prompts_of(8, 3, 9, 20)
NEW = 32
FEW_WORDS = 7  # in which a random drafter is right now and then
SUCCESSORS = {
    "dflash": "plain",
    "anchor predicts": "anchor predicts",
    "dflash2": "dflash2",
    "dspark": "dspark",
}


@pytest.fixture(scope="module")
def recorded(pair: Pair) -> Recording:
    return record(pair.target, PROMPTS, max_tokens=NEW)


def rounds_of_the_engine(target: Decoder, network: DFlash, prompts, *, tokens: int, stop=frozenset()) -> list[tuple]:
    drafter = DFlashDrafter.build(Setting(1, 96, network, DraftOptions(tokens=tokens)))
    engine = engine_of(target, drafter, max_len=96)
    requests = [(prompt, SamplingParams(max_tokens=NEW)) for prompt in prompts]
    return [tuple(sequence.rounds) for sequence in finish(engine, requests, stop_ids=stop)]


@pytest.mark.parametrize("tokens", [MOST, 3])
def test_rounds_are_those_that_the_engine_measures(pair, recorded, tokens):
    found = replay(pair.network, recorded)
    expected = rounds_of_the_engine(pair.target, pair.network, PROMPTS, tokens=tokens)
    assert [text.rounds(tokens) for text in found.texts] == expected
    assert len({r.accepted for rounds in expected for r in rounds}) > 2


def test_rounds_end_with_the_text_where_a_stop_token_does(pair, recorded):
    whole = recorded.texts[2]
    stop = frozenset((int(whole.tokens_T[whole.first + 3]),))
    stopped = record(pair.target, PROMPTS, max_tokens=NEW, stop_ids=stop)
    assert min(len(text.tokens_T) for text in stopped.texts) < whole.limit
    found = replay(pair.network, stopped)
    expected = rounds_of_the_engine(pair.target, pair.network, PROMPTS, tokens=MOST, stop=stop)
    assert [text.rounds() for text in found.texts] == expected
    assert found.acceptance().length == pytest.approx(1 + np.mean([r.accepted for rounds in expected for r in rounds]))


@pytest.mark.parametrize("kind", SUCCESSORS)
def test_rounds_of_every_kind_of_drafter_are_those_of_the_engine(kind):
    options = {"vocab_size": FEW_WORDS, "mask_token": 0, "block_size": 4}
    config = config_of(SUCCESSORS[kind], **options)
    if config.selector is not None:
        config = replace(config, selector=replace(config.selector, top_k=3))
    target = random_target(config)[0]
    network = network_of(config, random_drafter(config), target)
    prompts = [
        tuple(torch.randint(FEW_WORDS, (9,), generator=torch.Generator().manual_seed(i)).tolist()) for i in range(5)
    ]
    texts = record(target, prompts, max_tokens=NEW)
    expected = rounds_of_the_engine(target, network, prompts, tokens=config.max_tokens)
    for walk_only in (False, True):
        found = replay(network, texts, walk_only=walk_only)
        assert [text.rounds() for text in found.texts] == expected
    assert sum(r.accepted for rounds in expected for r in rounds) > 0


@pytest.mark.parametrize("variant", ["plain", "anchor predicts", "head of fewer words", "own embedding and head"])
def test_log_probabilities_are_those_of_the_dense_reference(variant):
    config = config_of(variant, block_size=5)
    target, embed, head = random_target(config)
    tensors = random_drafter(config)
    texts = record(target, [(1, 2, 3, 4, 5, 6, 7, 8, 9)], max_tokens=14)
    text, words = texts.texts[0], tensors.get("d2t")
    found = replay(network_of(config, tensors, target), texts).texts[0]
    features_TF = text.features(config.taps, len(text.tokens_T))
    for row, at in enumerate(found.positions_A):
        anchor = int(text.tokens_T[at])
        logits_KV = reference.draft_logits(config, tensors, embed, head, features_TF[:at], anchor)
        for slot, token in enumerate(text.tokens_T[at + 1 : at + 1 + config.max_tokens].tolist()):
            known = None if words is None else (words + torch.arange(len(words))).tolist()
            own = token if known is None else known.index(token) if token in known else None
            expected = measure.FLOOR if own is None else float(logits_KV[slot].log_softmax(-1)[own])
            assert found.log_probs_AK[row, slot] == pytest.approx(max(expected, measure.FLOOR), abs=1e-5)
            best = int(logits_KV[slot].argmax())
            assert found.right_AK[row, slot] == (token == (best if known is None else known[best]))


def test_a_sample_is_part_of_the_whole_however_few_blocks_a_pass_holds(pair, recorded, monkeypatch):
    whole = replay(pair.network, recorded)
    anchors = [list(some)[::3] for some in recorded.anchors]
    monkeypatch.setattr(measure, "SLOTS", 2 * pair.network.config.block_size)
    monkeypatch.setattr(measure, "CHUNK", 7)
    some = replay(pair.network, recorded, anchors)
    assert some.num_anchors == sum(map(len, anchors)) < whole.num_anchors
    for text, all_of_it, places in zip(some.texts, whole.texts, anchors, strict=True):
        rows = [place - text.first for place in places]
        np.testing.assert_allclose(text.log_probs_AK, all_of_it.log_probs_AK[rows], atol=1e-4)
        assert (text.accepted_A == all_of_it.accepted_A[rows]).all()
    with pytest.raises(UsageError, match="all its anchors"):
        some.texts[0].rounds()


def test_slots_beyond_the_end_of_a_text_count_for_nothing(pair, recorded):
    found = replay(pair.network, recorded)
    for text in found.texts:
        last = text.log_probs_AK[-1]
        assert not np.isnan(last[0])
        assert np.isnan(last[1:]).all()
        assert not text.right_AK[-1, 1:].any()
    assert found.log_prob == pytest.approx(np.nanmean(np.concatenate([text.log_probs_AK for text in found.texts])))
    assert len(found.slot_rates) == MOST


def test_a_wrong_reading_is_less_sure_of_the_right_words(pair, recorded):
    right = replay(pair.network, recorded)
    swapped = replay(pair.network.variant(replace(pair.network.config, taps=pair.network.config.taps[::-1])), recorded)
    full = replay(pair.network.variant(replace(pair.network.config, layers=(FULL,) * 3)), recorded)
    assert max(swapped.log_prob, full.log_prob) < right.log_prob - 0.1
    assert right.length_at_anchors > swapped.length_at_anchors


def test_a_recording_tells_its_size_before_it_takes_it_and_is_refused_where_there_is_no_room(pair, monkeypatch):
    said = []
    record(pair.target, PROMPTS[:1], max_tokens=4, report=said.append)
    assert "7 tokens of 4 blocks" in said[0]
    monkeypatch.setattr(recording, "_free_bytes", lambda device: 100)
    with pytest.raises(UsageError, match="MB are free on cpu"):
        record(pair.target, PROMPTS[:1], max_tokens=4)


def test_a_recording_needs_prompts_that_fit(pair):
    with pytest.raises(UsageError, match="at least one prompt"):
        record(pair.target, [], max_tokens=4)
    with pytest.raises(UsageError, match="context holds 512"):
        record(pair.target, PROMPTS, max_tokens=500)
