"""Checkpoints appear whole or not at all, and say so when they cannot."""

import json
import resource
from contextlib import contextmanager

import pytest
import torch

from outrider.errors import CheckpointError, UsageError
from outrider.train import state


def checkpoint_of(step: int, *, size: int = 4) -> state.Checkpoint:
    weights = {"fc.weight": torch.full((size, size), step + 0.5), "norm.weight": torch.ones(size)}
    optimizers = [{"state": {0: {"step": torch.tensor(float(step)), "exp_avg": torch.rand(size)}}, "param_groups": []}]
    progress = state.Progress(
        step=step, tokens=10 * step, epoch=1, within=2, counted={"sums": [0.1 + 0.2]}, run={"a": 1}
    )
    return state.Checkpoint(progress, weights, {"fc.weight": torch.zeros(size, size)}, optimizers)


@contextmanager
def room_for(size: int):
    """Let no file grow beyond ``size`` bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_saved_is_loaded_to_the_last_bit(tmp_path):
    saved = checkpoint_of(7)
    path = state.save(tmp_path, saved)
    assert path.name == "step-000000007"
    found = state.load(path)
    assert found.progress == saved.progress
    assert torch.equal(found.weights["fc.weight"], saved.weights["fc.weight"])
    assert torch.equal(found.means["fc.weight"], saved.means["fc.weight"])
    assert torch.equal(found.optimizers[0]["state"][0]["exp_avg"], saved.optimizers[0]["state"][0]["exp_avg"])


def test_the_newest_are_kept_and_those_asked_for(tmp_path):
    for step in range(1, 7):
        state.save(tmp_path, checkpoint_of(step))
        state.prune(tmp_path, keep=2, steps=(1, 3))
    assert [path.name[-1] for path in state.checkpoints(tmp_path)] == ["1", "3", "5", "6"]


def test_half_written_checkpoints_are_not_seen_and_are_swept_away(tmp_path):
    state.save(tmp_path, checkpoint_of(1))
    torn = tmp_path / "step-000000002.unfinished"
    torn.mkdir()
    (tmp_path / "step-000000003").mkdir()  # by hand: it holds nothing
    assert [path.name for path in state.checkpoints(tmp_path)] == ["step-000000001"]
    state.prune(tmp_path, keep=1, steps=())
    assert not torn.exists()


def test_a_step_may_be_saved_again(tmp_path):
    for _ in range(2):
        state.save(tmp_path, checkpoint_of(4))
    assert len(state.checkpoints(tmp_path)) == 1


@pytest.mark.parametrize("room", [100, 5_000, 40_000])
def test_a_full_disk_is_told_in_one_line_and_leaves_the_checkpoint_before(tmp_path, room):
    state.save(tmp_path, checkpoint_of(1))
    with (
        room_for(room),
        pytest.raises(UsageError, match=r"Cannot write the checkpoint of step 2 .*step-000000001") as told,
    ):
        state.save(tmp_path, checkpoint_of(2, size=100))
    assert "\n" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="Cannot write the checkpoint of step 1"):
        state.save(tmp_path / "file", checkpoint_of(1))


@pytest.mark.parametrize("name", [state.WEIGHTS, state.MEANS, state.OPTIMIZER, state.STATE])
@pytest.mark.parametrize("damage", ["cut", "gone", "noise"])
def test_damage_is_told_in_one_line(tmp_path, name, damage):
    path = state.save(tmp_path, checkpoint_of(3)) / name
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:20] if damage == "cut" else b"\x00\xff" * 300)
    with pytest.raises(CheckpointError, match=r"Cannot read the checkpoint .*step-000000003") as told:
        state.load(path.parent)
    assert "\n" not in str(told.value)


def test_the_state_is_plain_json(tmp_path):
    path = state.save(tmp_path, checkpoint_of(3))
    assert json.loads((path / state.STATE).read_text())["tokens"] == 30
