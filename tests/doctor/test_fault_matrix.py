"""The fault matrix on counts drawn here; and, of the real pair, that faults cost what they must."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import fault_matrix

from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.explain import explain
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.faults import usual_faults
from outrider.doctor.ablation.part import Observed
from outrider.doctor.ablation.table import AblationTable, Entry

TEXTS = 16
KINDS = fault_matrix._kinds(["short", "long", "long code", "short"] * 4)
DRAFTER = Path(__file__).parents[2] / "src" / "outrider" / "assets" / "smollm2-135m-dflash"
RATES = {"swa_ignored": (0.8, 0.4), "mask_token": (0.3, 0.6), "dtype_or_quantisation": (0.8, 0.75)}


def drawn(rates) -> Counts:
    held = np.random.default_rng(0).random((TEXTS, 80, 2)) < np.array(rates)
    return Counts(np.full(TEXTS, 80.0), np.logical_and.accumulate(held, 2).sum(1).astype(float))


@pytest.fixture
def table() -> AblationTable:
    faults = {cause: Fault(name=cause, strength="", cause=cause, how="") for cause in RATES}
    return AblationTable(drawn((0.8, 0.75)), tuple(Entry(faults[cause], drawn(RATES[cause])) for cause in RATES))


def test_observed_texts_are_others_than_the_tables(table):
    for split in fault_matrix._halves(KINDS):
        assert not set(split.known) & set(split.observed)
        assert split.shared(table.healthy) == 0
        assert sorted([*split.known, *split.observed]) == list(range(TEXTS))


def test_of_the_same_prompts_each_side_has_an_eighth_for_itself(table):
    splits = fault_matrix._eighths(KINDS)
    assert len(splits) == 8
    for split in splits:
        assert len(set(split.observed) - set(split.known)) == len(set(split.known) - set(split.observed)) == 2
        assert split.shared(table.healthy) == pytest.approx(12 / 14)
    assert set().union(*(set(split.known) - set(split.observed) for split in splits)) == set(range(TEXTS))


@pytest.mark.parametrize("ways", [fault_matrix._halves, fault_matrix._eighths])
def test_faults_that_differ_are_told_apart_and_one_that_does_nothing_is_not_seen(table, ways):
    trials = fault_matrix._trials(table, ways(KINDS), KINDS)
    assert all(trial.right and trial.among for trial in trials)
    assert {trial.fault for trial in trials if not trial.visible} == {"dtype_or_quantisation"}
    assert np.mean([trial.covered for trial in trials]) > 0.8


def test_the_tables_lines_and_shares_are_those_of_the_trials(table):
    trials = fault_matrix._trials(table, fault_matrix._halves(KINDS), [range(TEXTS)])
    alone = fault_matrix._alone(table)
    rows = fault_matrix._rows(table, {"here": trials}, alone)
    assert len(rows) == 2 + len(RATES)
    effect = "| dtype_or_quantisation | dtype_or_quantisation | +0.00 (+0.00 to +0.00) |"
    assert rows[2] == f"{effect} 0, 6, 6, 6 of 6 | {alone['dtype_or_quantisation'].place or ''} |"
    assert "| trials | 18 |" in fault_matrix._totals({"here": trials})
    summary = fault_matrix._summary(trials)
    assert summary["right cause first, or rightly nothing seen"] == "18 of 18 (100 %)"
    assert summary["right cause first, of faults that so many rounds can show"] == "12 of 12 (100 %)"
    assert (
        json.loads(json.dumps(fault_matrix._result({"here": trials}, alone, {})))["ways"]["here"]["summary"] == summary
    )


def test_a_wrong_diagnosis_counts_as_wrong(table):
    fault, seen = table.entries[0].fault, table.entries[1].counts
    explanation = explain(Observed(seen.rounds, seen.curve), table)
    effect = table.effect(table.entries[0])
    trial = fault_matrix._trial(fault, explanation, int(seen.rounds), seen.length - table.healthy.length, effect)
    assert trial.first == "mask_token"
    assert not trial.right
    assert not trial.covered


def test_long_prompts_are_a_kind_of_their_own_and_a_batch_is_checked(table):
    assert KINDS == [[0, 3, 4, 7, 8, 11, 12, 15], [1, 2, 5, 6, 9, 10, 13, 14]]
    counts = {"rounds": table.healthy.rounds_X.tolist(), "hits": table.healthy.hits_XK.tolist()}
    assert fault_matrix._batch(table, {"batch: 4 at once": counts}) == [
        "Decoded 4 at once: 0 of 16 texts count otherwise than alone."
    ]
    assert fault_matrix._batch(table, {}) == []


@pytest.mark.model
def test_faults_of_the_shipped_pair_cost_what_they_must():
    from outrider.checkpoint import resolve
    from outrider.doctor.ablation.run import ablate, pair_of
    from outrider.models.dflash.formats import read_drafter
    from outrider.runner import load

    runner = load("smollm2-135m", dtype="float32", device="cpu", max_len=256)
    pair = pair_of(runner.target, read_drafter(resolve(str(DRAFTER))))
    prompts = [runner.encode(f"Count from {start} to {start + 30}, one number a line.") for start in (1, 5)]
    wanted = {"taps permuted: reversed", "early checkpoint: 1", "weights rounded: fp8"}
    faults = [fault for fault in usual_faults(pair.config, 30) if fault.label in wanted]
    table = ablate(pair, prompts, faults=faults, max_tokens=32)
    effects = {entry.fault.label: table.effect(entry).value for entry in table.entries}
    assert table.healthy.length > 1.5
    assert effects["early checkpoint: 1"] == pytest.approx(1 - table.healthy.length, abs=0.1)
    assert effects["early checkpoint: 1"] < effects["taps permuted: reversed"] < -0.3
    assert abs(effects["weights rounded: fp8"]) < 0.3
