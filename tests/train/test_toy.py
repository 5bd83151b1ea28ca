"""The trainer makes a working pair, and what it measures is what the engine gives."""

import pytest
import torch
from dflash.pair import DRAFTER
from safetensors.torch import load_file
from train.toy import lines_of, task_of, toy, train

from outrider.models.dflash.network import DFlash
from outrider.train import state
from outrider.train.serving import Table, serve


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, train(folder, steps=50, evaluate_every=25)


def test_a_tiny_pair_goes_from_an_acceptance_length_of_one_to_over_four(run):
    folder, ended = run
    first, *_, last = lines_of(folder, "evaluation")
    assert first["tau"] < 1.1
    assert last["tau"] > 4
    assert last["tau_low"] <= last["tau"] <= last["tau_high"]
    assert last["tau"] == ended.evaluation.tau == pytest.approx(1 + sum(last["position_rates"]))
    assert last["held_out_loss"] < 0.2 * first["held_out_loss"]
    assert not last["warnings"]


def test_the_checkpoint_serves_as_the_log_says(run):
    folder, ended = run
    task = task_of(folder)
    tensors = load_file(ended.checkpoint / state.MEANS)
    prompts = [task.split.held_out.prompt(index) for index in range(len(task.split.held_out))]
    table = Table(toy().target, [*dict.fromkeys(prompts)][:16], frozenset(), 32)
    assert serve(table, DRAFTER, tensors, None).length == ended.evaluation.tau
    assert DFlash(DRAFTER, tensors.__getitem__, toy().target).config == DRAFTER


def test_the_log_counts_what_was_read(run):
    folder, _ = run
    steps, task = lines_of(folder, "step"), task_of(folder)
    assert [line["step"] for line in steps] == [10, 20, 30, 40, 50]
    whole_epochs = steps[-1]["epoch"] * task.split.train.response_tokens
    assert whole_epochs <= steps[-1]["tokens"] * 1.1
    assert steps[-1]["lr"] < steps[0]["lr"]
    for line in steps:
        assert line["seconds"] > 0
        assert 0 < line["target_share"] < 1
        assert len(line["slot_accuracy"]) == DRAFTER.max_tokens
    assert steps[-1]["loss"] < 0.5 * steps[0]["loss"]


def test_the_weights_are_kept_in_full_precision(run):
    _, ended = run
    assert {tensor.dtype for tensor in load_file(ended.checkpoint / state.WEIGHTS).values()} == {torch.float32}
