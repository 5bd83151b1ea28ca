"""``outrider train dflash`` as a user sees it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import run_cli
from dflash.drafter_files import write_drafter
from models.hybrid_files import as_multimodal
from tiny_model import write_tiny_model

from outrider.checkpoint.checkpoint import open_checkpoint
from outrider.checkpoint.source import resolve
from outrider.provenance import provenance
from outrider.train import manifest as m
from outrider.train import state
from outrider.train.fingerprint import fingerprints
from outrider.train.shards import Sample, ShardWriter
from outrider.train.start import drafter_of

SIZES = (
    *("--rows", 2, "--row-length", 64, "--anchors", 4, "--layers", "sf", "--window", 16, "--block", 6),
    *("--taps", "0,1", "--evaluate-prompts", 2, "--evaluate-tokens", 6, "--held-out", 0.2, "--log-every", 2),
)
VOCABULARY = 265


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a model and data of its own."""
    folder = tmp_path_factory.mktemp("place")
    write_tiny_model(folder / "model", num_hidden_layers=4)
    write_data(folder / "data", folder / "model")
    return folder


def write_data(folder: Path, model: Path, *, texts: int = 40, vocabulary: int = VOCABULARY - 5) -> None:
    draw = np.random.default_rng(0)
    files = fingerprints(open_checkpoint(resolve(str(model))))
    settings = m.Settings(
        temperatures=[(0.0, 1.0)], top_k=0, top_p=1.0, max_tokens=64, max_len=128, max_repeats=0, thinking=None, seed=0,
        weights={}, prompts="none", server=None, dtype="float32", shard_samples=64,
    )  # fmt: skip
    target = m.Target(name="tiny", files=files, vocab_size=VOCABULARY)
    sources = [m.SourceCounts(name="made up", prompts=texts)]
    made = m.Manifest(target=target, settings=settings, rows=m.PromptCounts(), sources=sources, provenance=provenance())
    writer = ShardWriter(folder, made)
    samples = [Sample(draw.integers(5, vocabulary, 40).tolist(), 8, 0, 0.0) for _ in range(texts)]
    writer.write(samples, answered=texts, fates=m.Fates())


@pytest.fixture
def run(capsys, place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: run_cli(capsys, "train", "dflash", place / "model", *arguments)


def test_a_drafter_is_trained_and_its_checkpoint_is_a_drafter(run, place, tmp_path):
    seen = run(place / "data", "--out", tmp_path / "run", "--steps", 4, *SIZES)
    assert seen.code == 0, seen.err
    assert "Complete at step 4 of 4" in seen.out
    assert "Acceptance length 1." in seen.out
    assert "held-out loss" in seen.err
    config, tensors = drafter_of(tmp_path / "run" / "step-000000004")
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == config.tensor_shapes()
    header = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert header["target"] == "tiny"
    assert header["data"]["sources"] == {"made up": 40}
    assert header["data"]["documents"] + header["data"]["held_out_documents"] == 40
    assert header["config"]["mask_token"] == config.mask_token


def test_a_drafter_is_trained_for_a_hybrid_target_in_the_published_layout(capsys, tmp_path):
    model = as_multimodal(write_tiny_model(tmp_path / "model", "qwen3_5"))
    write_data(tmp_path / "data", model)
    out = tmp_path / "run"
    seen = run_cli(capsys, "train", "dflash", model, tmp_path / "data", "--out", out, "--steps", 2, *SIZES)
    assert seen.code == 0, seen.err
    assert "Complete at step 2 of 2" in seen.out
    assert drafter_of(out / "step-000000002")[0].num_target_layers == 4


def test_a_run_goes_on_and_the_result_is_json(run, place, tmp_path):
    arguments = (place / "data", "--out", tmp_path / "run", "--steps", 4, *SIZES)
    assert "Time is up at step 1 of 4" in run(*arguments, "--minutes", 0).out
    seen = run(*arguments, "--resume", "--json")
    assert seen.code == 0, seen.err
    result = json.loads(seen.out)
    assert (result["reason"], result["step"], result["steps"]) == ("complete", 4, 4)
    assert result["evaluation"]["tau"] >= 1


def test_a_run_starts_from_a_checkpoint_or_a_drafter(run, place, tmp_path):
    first = run(place / "data", "--out", tmp_path / "one", "--steps", 2, *SIZES)
    assert first.code == 0, first.err
    begun = run(place / "data", "--out", tmp_path / "two", "--steps", 1, "--lr", 1e-9, "--ema", 0,
                "--init", tmp_path / "one" / "step-000000002", *SIZES)  # fmt: skip
    assert begun.code == 0, begun.err
    _, before = drafter_of(tmp_path / "one" / "step-000000002")
    _, after = drafter_of(tmp_path / "two" / "step-000000001")
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    drafter = write_drafter(tmp_path / "drafter", attention_bias=False, target_layer_ids=[0, 2], num_target_layers=4)
    given = run(place / "data", "--out", tmp_path / "three", "--steps", 1, "--init", drafter, *SIZES)
    assert given.code == 0, given.err
    assert len(state.load(tmp_path / "three" / "step-000000001").weights) == 36


def one_line(run, *arguments) -> str:
    return run(*arguments).check_one_line_error()


def test_what_is_missing_is_told_in_one_line(run, place, tmp_path):
    out = ("--out", tmp_path / "run", "--steps", 2)
    assert "there is no manifest.json" in one_line(run, tmp_path, *out)
    assert "either steps or tokens" in one_line(run, place / "data", "--out", tmp_path / "run")
    assert "whole numbers with commas" in one_line(run, place / "data", *out, "--taps", "1;2")
    assert "from 0 to 2" in one_line(run, place / "data", *out, *SIZES, "--taps", "3")
    assert "it ends texts" in one_line(run, place / "data", *out, *SIZES, "--mask-token", 263)
    assert "outside the vocabulary of 265" in one_line(run, place / "data", *out, *SIZES, "--mask-token", 265)
    assert "no file or folder" in one_line(run, place / "data", *out, *SIZES, "--init", "gone/with/it")
    assert "Training setting lr=-1" in one_line(run, place / "data", *out, "--lr", -1)


def test_data_of_another_target_is_refused_unless_it_is_wanted(run, place, tmp_path):
    write_tiny_model(tmp_path / "other", seed=3)
    write_data(tmp_path / "data", tmp_path / "other")
    arguments = (tmp_path / "data", "--out", tmp_path / "run", "--steps", 1, *SIZES)
    assert "whose files are not those of" in one_line(run, *arguments)
    assert run(*arguments, "--other-target").code == 0


def test_words_that_the_target_does_not_have_are_refused(run, place, tmp_path):
    write_data(tmp_path / "data", place / "model", vocabulary=400)
    assert "the target has 265 words" in one_line(
        run, tmp_path / "data", "--out", tmp_path / "run", "--steps", 1, *SIZES
    )


def test_data_or_target_that_vanished_are_told(run, place, tmp_path):
    shutil.copytree(place / "data", tmp_path / "data")
    (tmp_path / "data" / "shard-00000.safetensors").unlink()
    out = ("--out", tmp_path / "run", "--steps", 2, *SIZES)
    assert "Cannot read the shard" in one_line(run, tmp_path / "data", *out)
    shutil.copytree(place / "model", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    from outrider import cli

    assert cli.run(["train", "dflash", str(tmp_path / "model"), str(place / "data"), *map(str, out)]) == 2


def test_a_mask_token_that_texts_have_is_mentioned(run, place, tmp_path):
    seen = run(place / "data", "--out", tmp_path / "run", "--steps", 1, *SIZES, "--mask-token", 20)
    assert seen.code == 0, seen.err
    assert "Mask token 20 occurs" in seen.err
