"""The log of a run."""

import json

import pytest
from train.test_state import room_for

from outrider.errors import UsageError
from outrider.train.log import MetricsLog, read_lines


def log_of(folder, *, step: int = 0) -> MetricsLog:
    return MetricsLog(folder, {"config": {"block_size": 8}}, step=step)


def lines_of(folder):
    return read_lines(folder / "metrics.jsonl")


def written(folder, steps):
    log = log_of(folder)
    for step in steps:
        log.add({"kind": "step", "step": step, "loss": step / 3})
    return log


def test_a_log_opens_with_what_the_run_is(tmp_path):
    written(tmp_path / "run", [1])
    first, second = lines_of(tmp_path / "run")
    assert first == {"format": 1, "kind": "outrider-train", "config": {"block_size": 8}}
    assert second == {"kind": "step", "step": 1, "loss": 1 / 3}


def test_going_on_takes_out_what_came_after_the_checkpoint(tmp_path):
    written(tmp_path, [1, 2, 3, 4])
    log_of(tmp_path, step=2).add({"kind": "step", "step": 3, "loss": 0})
    assert [line.get("step") for line in lines_of(tmp_path)] == [None, 1, 2, 3]


def test_half_a_line_at_the_end_is_passed_over(tmp_path):
    written(tmp_path, [1, 2])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "st')
    assert len(lines_of(tmp_path)) == 3
    log_of(tmp_path, step=2).add({"kind": "step", "step": 3})
    assert [json.loads(text).get("step") for text in (tmp_path / "metrics.jsonl").read_text().splitlines()][1:] == [
        1,
        2,
        3,
    ]


def test_a_run_that_begins_anew_begins_its_log_anew(tmp_path):
    written(tmp_path, [1, 2])
    log_of(tmp_path)
    assert len(lines_of(tmp_path)) == 1


def test_a_damaged_line_in_the_middle_is_told(tmp_path):
    written(tmp_path, [1])
    (tmp_path / "metrics.jsonl").write_text('{"kind": "outrider-train"}\nnonsense\n{}\n')
    with pytest.raises(UsageError, match="line 2"):
        log_of(tmp_path, step=1)


def test_a_full_disk_is_told_in_one_line(tmp_path):
    log = written(tmp_path, [1])
    size = (tmp_path / "metrics.jsonl").stat().st_size
    with room_for(size + 5), pytest.raises(UsageError, match=r"Cannot write .*checkpoints written before are good"):
        log.add({"kind": "step", "step": 2})


def test_numbers_that_are_none_are_never_written(tmp_path):
    with pytest.raises(ValueError, match="Out of range"):
        log_of(tmp_path).add({"loss": float("nan")})
