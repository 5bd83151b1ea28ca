"""Faults put in on purpose are named while the run goes on, and a healthy run is told nothing."""

import json

import pytest
from train.faults import LESSONS, LOGS
from train.toy import lines_of, train

from outrider.train.parting import parting

NAMED = {"f1": "F1", "f2": "F2", "f3": "F3", "f8": "F8"}
QUICK = {"steps": 30, "evaluate_every": 0, "log_every": 15, "checkpoint_every": 30, "evaluate_prompts": 8}


@pytest.mark.parametrize("name", LESSONS)
def test_a_fault_is_named_in_the_run_that_has_it(tmp_path, name):
    told: list[str] = []
    ended = train(tmp_path, lesson=LESSONS[name], told=told, **QUICK | ({"steps": 60} if name == "f3" else {}))
    warnings = ended.evaluation.warnings
    assert [warning[:2] for warning in warnings] == ([NAMED[name]] if name in NAMED else [])
    assert [line for line in told if line.startswith("warning: ")] == [f"warning: {warning}" for warning in warnings]


def test_anchors_on_a_grid_show_in_the_log(tmp_path):
    for name, spread in (("f11", 1.0), ("healthy", 0.3)):
        train(tmp_path / name, lesson=LESSONS[name], **QUICK | {"steps": 4, "log_every": 4, "checkpoint_every": 4})
        phases = lines_of(tmp_path / name, "step")[-1]["anchor_phases"]
        assert sum(phases) == pytest.approx(1)
        assert (max(phases) == 1.0) if spread == 1.0 else (max(phases) < spread)


@pytest.mark.parametrize("name", LESSONS)
def test_the_recorded_logs_say_the_same(name):
    lines = [json.loads(text) for text in (LOGS / f"{name}.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["kind"] == "evaluation"][-1]
    found = parting(last["probes"], last["marginal_accuracy"], last["position_rates"])
    assert [finding.code for finding in found] == ([NAMED[name]] if name in NAMED else [])


def probes_of(**losses):
    return {name: {"loss": loss, "accuracy": [0.5]} for name, loss in losses.items()}


def test_a_gap_that_no_probe_closes_is_told_without_a_name():
    (found,) = parting(probes_of(as_trained=1.0, served=2.0, labels_shifted=3.0, all_causal=1.9), [0.6], [0.1])
    assert found.code == "parted"
    assert "no probe says why" in found.text


def test_an_engine_that_accepts_far_less_than_was_learnt_is_told():
    (found,) = parting(probes_of(as_trained=1.0, served=1.0), [0.8], [0.1])
    assert found.code == "parted"
    assert "80% of held-out text and accepted in 10%" in found.text
    assert not parting(probes_of(as_trained=1.0, served=1.0), [0.8], [0.6])


def test_nothing_is_said_of_a_drafter_that_knows_nothing_yet():
    assert not parting(probes_of(as_trained=9.0, served=10.0), [0.01], [0.0])
    assert not parting(probes_of(as_trained=9.0, served=10.0), [], [])


@pytest.mark.parametrize("token", [0, 17])
def test_a_wrong_mask_token_is_named_whichever_it_is(token):
    (found,) = parting(probes_of(as_trained=1.0, served=2.0, **{f"mask_token_{token}": 1.1}), [0.6], [0.3])
    assert found.code == "F8"
    assert f"mask token {token}" in found.text
