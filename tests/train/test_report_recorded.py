"""Recorded runs of the tiny pair: one that went well, and one for each fault that was put in on purpose."""

import json
from pathlib import Path

import pytest
from train.synthetic import write_lines

from outrider.train.report.read import read_run
from outrider.train.report.result import make_report
from outrider.train.report.verdict import judge

LOGS = Path(__file__).parent / "logs"
FAULTS = ("F1", "F2", "F3", "F8", "F11")


def found_in(verdict):
    return {check.code for check in verdict.checks if check.state == "found"}


def log_of(name):
    return LOGS / f"{name.lower()}.jsonl"


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_that_was_put_in_is_named(code):
    verdict = judge(read_run([log_of(code)]))
    assert verdict.status == "broken"
    assert verdict.headline.startswith(f"Broken: {code}, ")
    assert found_in(verdict) & set(FAULTS) == {code}


def test_nothing_is_found_in_a_run_without_faults():
    verdict = judge(read_run([log_of("healthy")]))
    assert found_in(verdict) == set()
    assert verdict.status in ("improving", "undecided")


@pytest.mark.parametrize(("code", "named"), [("F1", "F1/F8"), ("F8", "F1/F8"), ("healthy", None)])
def test_without_experiments_curves_alone_tell_that_training_and_serving_part(tmp_path, code, named):
    lines = [json.loads(line) for line in log_of(code).read_text().splitlines()]
    for line in lines:
        line.pop("probes", None)
    verdict = judge(read_run([write_lines(tmp_path / "metrics.jsonl", lines)]))
    assert (named in found_in(verdict)) == (named is not None)
    assert (verdict.status == "broken") == (named is not None)


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_recorded_log_makes_a_report_that_is_json(path):
    run = read_run([path])
    report = make_report(run, judge(run))
    assert json.loads(report.model_dump_json())["unit"] == "tokens"
    assert len(report.evaluations) == len(run.evaluations)
