"""``outrider train export`` as a user runs it: each format, its card, and one line for whatever is wrong."""

import json
import shutil

import pytest
import torch
from command_line import run_cli
from tiny_model import write_tiny_model
from train.drafts import TINY, as_read, random_tensors
from train.synthetic import run_lines, write_lines

from outrider.checkpoint import resolve
from outrider.models.dflash.formats import read_drafter
from outrider.models.weights import read_tensor
from outrider.runner import load
from outrider.train import state
from outrider.train.task import config_record


@pytest.fixture(autouse=True)
def isolated(own_caches):
    pass


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("target") / "tiny")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, target):
    """A run of two checkpoints; the log is by formula."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    facts = {"samples": 1000, "response_tokens": 80_000_000, "sources": {"open": 600, "own": 400}}
    lines = run_lines()
    lines[0] |= {"config": config_record(TINY), "target": str(target), "data": facts, "init": "runs/first"}
    write_lines(folder / "metrics.jsonl", lines)
    for step in (2000, 4000):
        weights = {name: value * 0.1 for name, value in random_tensors(TINY, seed=step).items()}
        progress = state.Progress(step=step)
        state.save(folder, state.Checkpoint(progress, random_tensors(TINY, seed=step + 1), weights, []))
    return folder


@pytest.fixture
def export(capsys, run_folder, tmp_path):
    def call(*arguments, run=run_folder, out=tmp_path / "out"):
        return run_cli(capsys, "train", "export", run, "--out", out, *arguments)

    return call


@pytest.mark.parametrize(("form", "origin"), [("zlab", "z-lab"), ("speculators", "speculators"), ("gguf", "gguf")])
def test_the_mean_of_the_newest_checkpoint_is_written_in_each_format(export, tmp_path, form, origin):
    seen = export("--format", form, "--dtype", "float32", "--json")
    assert seen.code == 0, seen.err
    told = json.loads(seen.out)
    assert (told["step"], told["format"], told["dtype"]) == (4000, form, "float32")
    found = read_drafter(resolve(told["path"]))
    assert found.config == as_read(TINY, origin)
    expected = random_tensors(TINY, seed=4000)["norm.weight"] * 0.1
    assert torch.equal(read_tensor(found.checkpoint, "norm.weight"), expected)
    assert told["bytes"] == sum(path.stat().st_size for path in (tmp_path / "out").iterdir())


def test_an_earlier_checkpoint_can_be_had(export, tmp_path):
    assert export("--step", "2000", "--dtype", "float32").code == 0
    found = read_drafter(resolve(str(tmp_path / "out")))
    expected = random_tensors(TINY, seed=2000)["norm.weight"] * 0.1
    assert torch.equal(read_tensor(found.checkpoint, "norm.weight"), expected)


def test_the_export_drafts_in_the_engine_without_changing_the_text(export, target, tmp_path):
    assert export().code == 0
    prompt = [5, 9, 40]
    plain = load(str(target), max_len=64).generate(prompt, max_tokens=16).tokens
    drafted = load(str(target), drafter="dflash", draft_model=str(tmp_path / "out"), max_len=64)
    assert drafted.generate(prompt, max_tokens=16).tokens == plain


def test_the_card_tells_data_curves_evaluation_and_how_to_run_it(export, target, tmp_path):
    assert export("--license", "apache-2.0").code == 0
    text = (tmp_path / "out" / "README.md").read_text()
    front, body = text.removeprefix("---\n").split("---\n", 1)
    assert 'license: "apache-2.0"' in front
    assert f'base_model: "{target}"' in front
    assert "- speculative-decoding" in front
    for part in (
        "80,000,000 tokens of responses",
        "open 600, own 400",
        "started from: first, ",
        "step 4,000 of 4000",
        "| 4,000 | 80,000,000 | 2.5",
        "on 48 held-out prompts",
        "Still improving: another 80 M tokens",
        "### vLLM",
        "### SGLang",
        "### llama.cpp",
        "--drafter dflash,ddtree --draft-model out",
        "2 of 3 with a window of 12",
    ):
        assert part in body


def test_the_card_of_an_earlier_step_ends_its_curve_there(export, tmp_path):
    assert export("--step", "2000").code == 0
    text = (tmp_path / "out" / "README.md").read_text()
    assert "at step 2,000" in text
    assert "| 2,000 | 40,000,000 |" in text
    assert "| 4,000 |" not in text


def test_what_was_written_is_described_by_inspect(export, capsys, target, tmp_path):
    assert export("--license", "mit").code == 0
    seen = run_cli(capsys, "inspect", tmp_path / "out", "--target", target)
    assert seen.code == 0, seen.out
    assert "license: mit" in seen.out


def test_a_step_without_a_checkpoint_is_named(export):
    assert "no checkpoint of step 3; there are 2000, 4000" in export("--step", "3").check_one_line_error()


def test_a_folder_that_is_no_run_is_named(export, tmp_path):
    assert "no folder of outrider train dflash" in export(run=tmp_path).check_one_line_error()


def test_a_run_without_checkpoints_is_named(export, run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "fresh", ignore=shutil.ignore_patterns("step-*"))
    assert "no complete checkpoint yet" in export(run=tmp_path / "fresh").check_one_line_error()


def test_a_damaged_checkpoint_is_named(export, run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "damaged")
    path = tmp_path / "damaged" / "step-000004000" / "ema.safetensors"
    path.write_bytes(path.read_bytes()[:-50])
    assert "export another step" in export(run=tmp_path / "damaged").check_one_line_error()


def test_a_config_of_another_version_is_named(export, run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "later")
    log = tmp_path / "later" / "metrics.jsonl"
    log.write_text(log.read_text().replace('"hidden_size"', '"width"', 1))
    assert "is not understood" in export(run=tmp_path / "later").check_one_line_error()


def test_nothing_is_overwritten(export, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    assert "not an empty folder" in export().check_one_line_error()


def test_a_gguf_file_needs_the_targets_vocabulary(export, run_folder, target, tmp_path):
    shutil.copytree(run_folder, tmp_path / "moved")
    log = tmp_path / "moved" / "metrics.jsonl"
    log.write_text(log.read_text().replace(json.dumps(str(target)), json.dumps(str(tmp_path / "gone")), 1))
    line = export("--format", "gguf", run=tmp_path / "moved").check_one_line_error()
    assert "give --target" in line
    assert not (tmp_path / "out").exists()
    assert export("--format", "gguf", "--target", target, run=tmp_path / "moved").code == 0


def test_a_target_that_has_gone_is_not_needed_for_folders(export, run_folder, target, tmp_path):
    shutil.copytree(run_folder, tmp_path / "moved")
    log = tmp_path / "moved" / "metrics.jsonl"
    log.write_text(log.read_text().replace(json.dumps(str(target)), json.dumps("owner/name"), 1))
    assert export("--format", "speculators", run=tmp_path / "moved").code == 0
    raw = json.loads((tmp_path / "out" / "config.json").read_text())
    assert raw["speculators_config"]["verifier"] == {"name_or_path": "owner/name", "architectures": []}
