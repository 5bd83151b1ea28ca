"""What goes wrong in a run: one clear line each."""

import math

import pytest
import torch
from train.test_state import room_for
from train.toy import lines_of, task_of, train

from outrider.errors import UsageError
from outrider.train import learner, state

SHORT = {"steps": 8, "log_every": 2, "evaluate_every": 0, "checkpoint_every": 2, "rows": 2, "anchors": 4,
         "evaluate_prompts": 2, "evaluate_tokens": 6}  # fmt: skip


def breaking_at(broken: int):
    return lambda options, step, steps: math.inf if step >= broken else options.lr


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_last_good_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(learner, "learning_rate", breaking_at(4))
    with pytest.raises(
        UsageError, match=r"between steps 5 and 6: the last good checkpoint is .*step-000000004"
    ) as told:
        train(tmp_path, **SHORT)
    assert "\n" not in str(told.value)
    assert all(torch.isfinite(tensor).all() for tensor in state.load(state.place(tmp_path, 4)).weights.values())
    assert [line["step"] for line in lines_of(tmp_path, "step")] == [2, 4]


def test_a_run_that_breaks_at_once_says_that_there_is_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(learner, "learning_rate", breaking_at(0))
    with pytest.raises(UsageError, match="there is no checkpoint before it"):
        train(tmp_path, **SHORT)


def test_a_full_disk_stops_the_run_and_the_checkpoint_before_is_good(tmp_path):
    class Filling(list):
        room = None

        def append(self, line):
            if line.startswith("step 4/"):
                self.room = room_for(3000)
                self.room.__enter__()

    told = Filling()
    try:
        with pytest.raises(UsageError, match=r"Cannot write .*step-000000002 with --resume") as said:
            train(tmp_path, told=told, **SHORT)
    finally:
        told.room.__exit__(None, None, None)
    assert "\n" not in str(said.value)
    assert train(tmp_path, resume=True, **SHORT).reason == "complete"


def test_a_prompt_that_leaves_no_room_in_the_context_is_refused(tmp_path):
    with pytest.raises(UsageError, match="No held-out prompt and 512 new tokens fit"):
        train(tmp_path, **SHORT | {"evaluate_tokens": 512})


def test_the_length_of_a_run_may_be_said_in_tokens(tmp_path):
    task = task_of(tmp_path, **SHORT | {"steps": None, "tokens": 20_000})
    reader = task.reader(1)
    per_step = task.split.train.response_tokens / reader.steps(0)
    assert abs(task.steps(reader) - 20_000 / per_step) < 1
    train(tmp_path, **SHORT | {"steps": None, "tokens": 900})
    assert 900 <= lines_of(tmp_path, "step")[-1]["tokens"] < 1200


@pytest.mark.parametrize("change", [
    {"loss": "d-pace"}, {"distillation": 0.5}, {"optimizer": "muon"}, {"accumulation": 2}, {"bf16": True},
    {"loss": "d-pace", "distillation": 1.0, "bf16": True},
])  # fmt: skip
def test_every_kind_of_loss_optimizer_and_precision_learns(tmp_path, change):
    changed = SHORT | {"steps": 16, "lr": 0.01} | change
    train(tmp_path, **changed)
    losses = [line["loss"] for line in lines_of(tmp_path, "step")]
    assert losses[-1] < losses[0] - 0.3
