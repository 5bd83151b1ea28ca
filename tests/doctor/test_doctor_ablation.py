"""An ablation in the verdict: what explains the curve is named, what does not is ruled out with its size."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import run_cli
from dflash.drafter_files import write_drafter
from tiny_model import write_tiny_model

from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.doctor.ablation_verdict import merged
from outrider.doctor.evidence import Evidence
from outrider.doctor.verdict import Finding, Verdict

HEALTHY = (0.8, 0.6, 0.4)
FAULTS = {"swa_ignored": (0.78, 0.45, 0.2), "mask_token": (0.5, 0.05, 0.01), "layer_id_offset": (0.6, 0.4, 0.25)}


def counts(rates, texts=30, rounds=100):
    return Counts(np.full(texts, float(rounds)), np.tile(np.array(rates) * rounds, (texts, 1)))


def table():
    entries = (Entry(Fault(name=cause, strength="", cause=cause, how=""), counts(u)) for cause, u in FAULTS.items())
    return AblationTable(counts(HEALTHY), tuple(entries))


def seen(rates, rounds=3000):
    counters = {"accepted_per_position": list(rates), "rounds": rounds}
    return Evidence.model_validate({"schema": 1, "counters": counters})


def finding(cause, confidence, **more):
    return Finding(code="OR999", cause=cause, standing="possible", confidence=confidence, **more)


def static():
    some = [finding("swa_ignored", 0.4, remedy=["widen"]), finding("mask_token", 0.2), finding("prefix_cache", 0.3)]
    return Verdict(summary="by files alone", findings=some, next=["ask"])


def test_the_fault_that_gives_the_curve_is_first_with_its_measured_effect():
    found, best = merged(seen(FAULTS["mask_token"]), static(), table())
    first = found.findings[0]
    assert (first.cause, first.standing, first.code) == ("mask_token", "confirmed", "OR203")
    low, high = first.effect.tokens_per_round
    assert low <= sum(FAULTS["mask_token"]) - sum(HEALTHY) <= high < 0
    assert "mask_token" in found.summary
    assert [entry.fault.cause for entry in best] == ["mask_token"]


def test_measurements_of_one_kind_of_texts_are_compared_with_those():
    curves = {"swa_ignored": (HEALTHY, (0.5, 0.2, 0.1)), "context_kv_dropped": ((0.5, 0.2, 0.1), HEALTHY)}
    entries = tuple(
        Entry(Fault(name=cause, strength="", cause=cause, how=""), joined(counts(one, 15), counts(other, 15)))
        for cause, (one, other) in curves.items()
    )
    apart = AblationTable(counts(HEALTHY), entries)
    kinds = ["short"] * 15 + ["long"] * 15
    series = [
        {"when": {"workload": kind}, "counters": {"accepted_per_position": list(rates), "rounds": 1500}}
        for kind, rates in (("short", HEALTHY), ("long", (0.5, 0.2, 0.1)))
    ]
    evidence = Evidence.model_validate({"schema": 1, "series": series})
    found, best = merged(evidence, static(), apart, kinds=kinds)
    assert (found.findings[0].cause, found.findings[0].standing) == ("swa_ignored", "confirmed")
    assert [entry.fault.cause for entry in best] == ["swa_ignored"]
    assert merged(evidence, static(), apart, kinds=["other"] * 30)[0].findings == static().findings


def joined(one, other):
    return Counts(np.concatenate((one.rounds_X, other.rounds_X)), np.concatenate((one.hits_XK, other.hits_XK)))


def test_what_was_tried_in_vain_is_ruled_out_with_its_size():
    found, _ = merged(seen(FAULTS["mask_token"]), static(), table())
    ruled = next(one for one in found.findings if one.cause == "swa_ignored")
    assert ruled.standing == "refuted"
    assert f"{sum(FAULTS['swa_ignored']) - sum(HEALTHY):+.2f}" in ruled.against[0]
    assert found.findings[-1] is ruled


def test_what_was_not_tried_shares_what_is_left():
    found, _ = merged(seen(FAULTS["mask_token"]), static(), table())
    assert next(one for one in found.findings if one.cause == "prefix_cache").confidence < 0.05
    odd, _ = merged(seen((0.05, 0.049, 0.048)), static(), table())
    assert "No fault" in odd.summary
    assert next(one for one in odd.findings if one.cause == "prefix_cache").confidence == pytest.approx(0.3, abs=0.02)


def test_where_nothing_gives_the_curve_a_suspect_keeps_its_share_and_is_told_what_was_tried():
    odd, _ = merged(seen((0.05, 0.049, 0.048)), static(), table())
    kept = next(one for one in odd.findings if one.cause == "swa_ignored")
    assert kept.standing == "possible"
    assert kept.confidence == pytest.approx(0.4, abs=0.02)
    assert "at the strengths tried" in kept.against[0]


def test_on_the_same_prompts_a_small_fault_is_seen():
    rates = (0.79, 0.58, 0.38)
    small = AblationTable(
        counts(HEALTHY), (Entry(Fault(name="x", strength="", cause="sampling", how=""), counts(rates)),)
    )
    apart, _ = merged(seen(rates), Verdict(summary="x"), small)
    same, _ = merged(seen(rates), Verdict(summary="x"), small, shared=0.9)
    assert all(one.cause != "sampling" or one.confidence < 0.5 for one in apart.findings)
    assert (same.findings[0].cause, same.findings[0].confidence > 0.9) == ("sampling", True)


def test_a_remedy_known_before_is_kept():
    found, _ = merged(seen(FAULTS["swa_ignored"]), static(), table())
    assert (found.findings[0].cause, found.findings[0].remedy) == ("swa_ignored", ["widen"])


def test_the_curve_of_the_healthy_pair_accuses_nobody_that_was_tried():
    found, best = merged(seen(HEALTHY), Verdict(summary="x"), table())
    assert "as it was observed" in found.summary
    assert best == []
    assert all(one.confidence < 0.3 for one in found.findings)


SICK = (0.05, 0.005, 0.0)
WELL = (0.7, 0.5, 0.3)


def reading(cause, rates):
    return Entry(Fault(name=f"another {cause}", strength="", cause=cause, how=""), counts(rates))


def sick_table(*better):
    faults = (reading("prefix_cache", (0.04, 0.004, 0.0)), *better)
    return AblationTable(counts(SICK), faults)


def test_a_reading_of_the_files_that_drafts_better_is_the_finding():
    found, _ = merged(seen(SICK), static(), sick_table(reading("wrong_layer_ids", WELL)))
    first = found.findings[0]
    assert (first.cause, first.standing) == ("wrong_layer_ids", "confirmed")
    assert first.effect.tokens_per_round[1] == pytest.approx(sum(SICK) - sum(WELL), abs=0.01)
    assert "2.50 tokens a round" in found.summary
    assert first.remedy


def test_readings_that_were_searched_count_as_well():
    found, _ = merged(seen(SICK), static(), sick_table(), [reading("mask_token", WELL)])
    assert (found.findings[0].cause, found.findings[0].standing) == ("mask_token", "confirmed")
    assert sum(one.confidence for one in found.findings) <= 1.001


def test_longer_drafts_or_other_sampling_are_no_mistake_in_files():
    found, _ = merged(seen(SICK), static(), sick_table(reading("num_speculative_tokens", WELL)))
    assert found.findings[0].cause != "num_speculative_tokens"


def test_a_pair_that_drafts_in_no_reading_is_untrained():
    found, _ = merged(seen(SICK), static(), sick_table(), [])
    assert (found.findings[0].cause, found.findings[0].standing) == ("undertrained_drafter", "likely")
    assert "In no reading" in found.summary


def test_files_are_not_blamed_for_what_the_pair_does_not_do_here():
    found, _ = merged(seen((0.4, 0.1, 0.02)), static(), sick_table(reading("wrong_layer_ids", WELL)))
    first = found.findings[0]
    assert "the same files" not in " ".join(first.evidence) or first.confidence < 0.3


def test_files_are_judged_without_an_observed_curve_too():
    found, _ = merged(Evidence(schema=1), static(), sick_table(reading("wrong_layer_ids", WELL)))
    assert found.findings[0].cause == "wrong_layer_ids"


def test_without_an_observed_curve_the_verdict_stays_and_says_what_is_missing():
    found, best = merged(Evidence(schema=1), static(), table())
    assert found.findings == static().findings
    assert "per position" in found.next[0]
    assert best == []


@pytest.fixture
def evidence(monkeypatch):
    monkeypatch.setattr("outrider.commands.doctor_ablation.MAX_TOKENS", 12)
    told = SimpleNamespace(evidence=Evidence(schema=1), warnings=())
    monkeypatch.setitem(sys.modules, "outrider.doctor.intake", SimpleNamespace(gather=lambda **_: told))
    return told


def test_a_pair_of_folders_is_run_with_each_fault(own_caches, evidence, tmp_path, capsys):
    target = write_tiny_model(tmp_path / "target")
    drafter = write_drafter(tmp_path / "drafter")
    (tmp_path / "p.jsonl").write_text(json.dumps({"prompt": "one two three"}) + "\n" + json.dumps({"prompt": "a b"}))
    arguments = ("doctor", "--drafter", drafter, "--target", target, "--prompts", tmp_path / "p.jsonl")
    seen_here = run_cli(capsys, *arguments)
    assert "With each fault put in" in seen_here.out, seen_here
    assert "swa_ignored" in seen_here.out
    assert "template: off" in seen_here.out
    assert "batch: 4 at once, decoded here: +0.00" in seen_here.out
    assert "0 of 2 texts part" in seen_here.out
    assert "thinking: not applicable" in seen_here.out
    assert json.loads(run_cli(capsys, *arguments, "--json").out)["schema"] == 1
