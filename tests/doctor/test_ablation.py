"""Faults put into the tiny trained pair: each does what it says, and the rest stays as it was."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from dflash.pair import DRAFTER, trained_pair
from dflash.rounds import prompts_of

from outrider.doctor.ablation import inject, run
from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.fault import Damage, Fault
from outrider.doctor.ablation.faults import HEALTHY, usual_faults
from outrider.doctor.ablation.inject import Pair, replay_with
from outrider.doctor.ablation.run import ablate, ablate_recorded
from outrider.doctor.verdict import Cause
from outrider.errors import UsageError
from outrider.models.dflash.network import DFlash
from outrider.replay import Recording, record, replay

PROMPTS = prompts_of(6, 5, 9, 14)


@pytest.fixture(scope="module")
def pair() -> Pair:
    trained = trained_pair()
    return Pair(trained.target, DRAFTER, trained.tensors.__getitem__)


@pytest.fixture(scope="module")
def recorded(pair) -> Recording:
    return record(pair.target, PROMPTS, max_tokens=32)


def fault(**damage) -> Fault:
    return Fault(name="made here", strength="", cause="other", how="", damage=Damage(**damage))


def hits(pair, recording, **damage) -> np.ndarray:
    return np.concatenate([text.right_AK for text in replay_with(fault(**damage), pair, recording).texts])


def test_without_a_fault_the_pair_is_as_it_was(pair, recorded):
    plain = replay(DFlash(DRAFTER, pair.read, pair.target), recorded)
    found = replay_with(HEALTHY, pair, recorded)
    assert found.acceptance() == plain.acceptance()
    for one, other in zip(plain.texts, found.texts, strict=True):
        np.testing.assert_array_equal(one.accepted_A, other.accepted_A)


def test_a_misread_config_is_that_variant_of_the_network(pair, recorded):
    turned = next(one for one in usual_faults(DRAFTER, 4) if one.label == "taps permuted: reversed")
    variant = DFlash(DRAFTER, pair.read, pair.target).variant(replace(DRAFTER, taps=DRAFTER.taps[::-1]))
    expected = replay(variant, recorded).acceptance()
    assert replay_with(turned, pair, recorded).acceptance() == expected


def test_lost_context_is_not_read(pair, recorded):
    without = hits(pair, recorded, kept_newest=0)
    np.testing.assert_array_equal(without, hits(pair, recorded, kept_newest=0, feature_noise=3.0))
    np.testing.assert_array_equal(without, hits(pair, recorded, lost_before=10_000))
    np.testing.assert_array_equal(without, hits(pair, recorded, lost_newest=10_000))
    assert without.mean() < hits(pair, recorded).mean() - 0.1


def test_context_that_is_kept_is_read(pair, recorded):
    np.testing.assert_array_equal(hits(pair, recorded), hits(pair, recorded, kept_newest=10_000))
    assert (hits(pair, recorded, lost_newest=2) != hits(pair, recorded)).any()


def test_positions_of_a_block_matter_only_against_its_context(pair, recorded):
    alone = hits(pair, recorded, kept_newest=0)
    assert (alone != hits(pair, recorded, kept_newest=0, block_shift=9)).mean() < 0.01
    assert (hits(pair, recorded) != hits(pair, recorded, block_shift=2)).mean() > 0.02


def test_without_the_hidden_norm_its_weights_do_not_matter(pair, recorded):
    def muted(name):
        return torch.zeros(DRAFTER.hidden_size) if name == "hidden_norm.weight" else pair.read(name)

    damaged = replace(pair, read=muted)
    expected = hits(pair, recorded, norm_missing=True)
    np.testing.assert_array_equal(expected, hits(damaged, recorded, norm_missing=True))
    assert (expected != hits(pair, recorded)).any()


@pytest.mark.parametrize("damage", [{"head": "random"}, {"head": "rolled"}, {"weight_noise": 1.0}])
def test_a_wrong_head_or_no_training_is_hardly_ever_right(pair, recorded, damage):
    assert hits(pair, recorded, **damage).mean() < 0.15


def test_a_head_one_row_off_names_the_word_after_the_right_one(pair):
    head = inject._head(pair.target)
    units = torch.eye(DRAFTER.hidden_size)
    torch.testing.assert_close(units @ head.T, pair.target.logits(units))


def test_more_noise_in_the_weights_costs_more(pair, recorded):
    shares = [hits(pair, recorded, weight_noise=noise).mean() for noise in (0.0, 0.2, 0.4, 1.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def test_finer_formats_change_less(pair, recorded):
    healthy = hits(pair, recorded)
    for where in ("weight_format", "feature_format", "cache_format"):
        changed = [(hits(pair, recorded, **{where: form}) != healthy).mean() for form in ("int8", "int4")]
        assert changed[0] <= changed[1] + 0.01
        assert changed[0] < 0.03


def test_a_dead_tap_reads_nothing_of_its_block(pair, recorded):
    blanked = [
        replace(text, blocks_LTH=text.blocks_LTH.index_fill(0, torch.tensor(DRAFTER.taps[1]), 0))
        for text in recorded.texts
    ]
    found = hits(pair, recorded, dead_tap=1)
    np.testing.assert_array_equal(found, hits(pair, Recording(tuple(blanked))))
    assert (found != hits(pair, recorded)).any()


def test_a_cold_target_draws_its_best_word_and_a_hot_one_ends_rounds(pair, recorded):
    np.testing.assert_array_equal(hits(pair, recorded, temperature=1e-3), hits(pair, recorded))
    assert hits(pair, recorded, temperature=2.0).mean() < hits(pair, recorded).mean() - 0.1


def test_every_usual_fault_can_be_put_in_and_the_target_writes_once(pair, monkeypatch):
    calls = []
    monkeypatch.setattr(run, "record", lambda *args, **named: calls.append(named) or record(*args[:2], max_tokens=12))
    said = []
    table = ablate(pair, PROMPTS[:2], max_tokens=12, told=said.append)
    faults = usual_faults(DRAFTER, 4)
    assert [entry.fault.label for entry in table.entries] == [one.label for one in faults]
    assert len(calls) == 1
    assert {one.label for one in faults} <= set(said)
    assert len({one.label for one in faults}) == len(faults)
    assert {one.cause for one in faults} <= set(get_args(Cause))
    by_label = {entry.fault.label: entry.counts for entry in table.entries}
    assert by_label["tokens drafted: 1"].drafted == 1
    assert by_label["block: double"].drafted == 2 * DRAFTER.block_size - 1
    assert all(0 <= u <= 1 for counts in by_label.values() for u in counts.curve)


def test_the_table_measures_a_fault_against_the_healthy_pair_on_the_same_texts(pair, recorded):
    table = ablate_recorded(pair, recorded, faults=[fault(kept_newest=0), fault(drafted=1)])
    effect = table.effect(table.entries[0])
    assert effect.low <= effect.value <= effect.high
    assert effect.value == pytest.approx(table.entries[0].counts.length - table.healthy.length)
    expected = replay_with(HEALTHY, pair, recorded).acceptance()
    assert table.healthy.length == pytest.approx(expected.length)
    assert table.healthy.curve == pytest.approx(expected.position_rates)
    some = table.of_texts([0, 2])
    assert some.healthy.rounds == Counts.of(expected, 7).rounds_X[[0, 2]].sum()


def test_texts_without_a_round_are_refused(pair):
    with pytest.raises(UsageError, match="at least two written tokens"):
        ablate_recorded(pair, Recording(()))
