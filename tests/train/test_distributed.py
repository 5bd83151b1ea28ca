"""Several processes, or several batches a step, do what one process does with all rows at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from train import toy
from train.toy import lines_of
from train.worker import STEPS, run

from outrider.train import state

ROOT = Path(__file__).parents[2]


@pytest.fixture
def one(tmp_path, monkeypatch) -> Path:
    """A run of one process that takes four rows a step."""
    monkeypatch.setattr(toy, "toy", toy.toy)
    run(tmp_path / "one", rows=4, accumulation=1)
    return tmp_path / "one"


def check_same(one: Path, other: Path) -> None:
    """Losses, gradients and weights agree but for the order of sums."""
    for kind in ("step", "evaluation"):
        first, second = lines_of(one, kind), lines_of(other, kind)
        assert len(first) == len(second) >= 2
        for left, right in zip(first, second, strict=True):
            assert (left["step"], left["tokens"], left["epoch"]) == (right["step"], right["tokens"], right["epoch"])
            for key in {"loss", "grad_norm", "tau"} & left.keys():
                assert left[key] == pytest.approx(right[key], rel=1e-5)
    weights = [load_file(state.place(folder, STEPS) / state.WEIGHTS) for folder in (one, other)]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=1e-3, atol=1e-5)


def test_accumulated_batches_give_the_gradient_of_the_whole(one, tmp_path):
    run(tmp_path / "other", rows=2, accumulation=2)
    check_same(one, tmp_path / "other")


def test_two_processes_give_the_gradient_of_the_whole(one, tmp_path):
    paths = os.pathsep.join(str(ROOT / part) for part in ("src", "tests"))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    worker = ["-m", "train.worker", str(tmp_path / "two"), "2", "1"]
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launch, *worker], env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count(f"step {STEPS}/{STEPS}") == 1  # the first process alone speaks
    check_same(one, tmp_path / "two")
