"""``outrider train data`` as a user runs it: data, resumed data, and one line for whatever is wrong."""

import io
import json
import shutil

import pytest
from command_line import run_cli
from tiny_model import write_tiny_model
from train.openai_stub import Stub, completion, serving

from outrider.commands import train_data
from outrider.runner import load
from outrider.train import remote
from outrider.train.shards import read_samples

PROMPTS = ["Name a bird.", "What is two and two?", "the end", "Sing", "Tell me of the sea in a few words."]


@pytest.fixture(autouse=True)
def isolated(own_caches, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=2)


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))
    return path


@pytest.fixture
def run(capsys, tmp_path):
    def run(*arguments, out=tmp_path / "data"):
        return run_cli(capsys, "train", "data", "--out", out, "--max-tokens", "12", "--batch", "3", *arguments)

    return run


def test_prompts_become_samples_of_the_target(run, tiny, prompts, tmp_path):
    seen = run(tiny, "--prompts", prompts, "--temperature", "0")
    assert seen.code == 0, seen.err
    assert "5 samples" in seen.out
    samples = read_samples(tmp_path / "data")
    runner = load(str(tiny), max_len=96)
    found = {tuple(samples.tokens(n).tolist()) for n in range(len(samples))}
    for text in PROMPTS:
        prompt = runner.encode([{"role": "user", "content": text}])
        assert (*prompt, *runner.generate(prompt, max_tokens=12).tokens) in found


def test_json_tells_what_was_made(run, tiny, prompts):
    seen = run(tiny, "--prompts", prompts, "--json")
    result = json.loads(seen.out)
    assert result["samples"] == result["manifest"]["sources"][0]["samples"] == 5
    assert result["manifest"]["sources"][0]["name"] == "prompts.jsonl"
    assert result["response_tokens"] == result["new_response_tokens"] > 5
    assert result["manifest"]["complete"]
    assert set(result["manifest"]["target"]["files"]) >= {"model.safetensors", "config.json", "tokenizer.json"}


def test_a_higher_goal_adds_to_the_folder(run, tiny, prompts, tmp_path):
    first = json.loads(run(tiny, "--prompts", prompts, "--tokens", "60", "--json").out)
    second = json.loads(run(tiny, "--prompts", prompts, "--tokens", "120", "--json").out)
    assert second["response_tokens"] >= 120 > first["response_tokens"] >= 60
    assert second["new_response_tokens"] == second["response_tokens"] - first["response_tokens"]


def test_several_places_and_the_models_own_prompts_are_mixed(run, tiny, prompts, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text('{"turns": ["Hello"]}\n{"prompt": "Sing"}\nbroken\n')
    seen = run(tiny, "--prompts", prompts, "--prompts", other, "--self", "3", "--weight", "self=2", "--json")
    result = json.loads(seen.out)
    sources = {source["name"]: source for source in result["manifest"]["sources"]}
    assert {name: source["prompts"] for name, source in sources.items()} == {
        "prompts.jsonl": 5,
        "other.jsonl": 1,
        "self": 3,
    }
    assert sources["self"]["samples"] == 6
    assert result["manifest"]["rows"] == {"rows": 11, "broken": 1, "duplicates": 1, "too_long": 0}
    assert "other.jsonl: 1 of 3 rows passed over; the first: line 3: not valid JSON" in seen.err


def test_a_server_answers_in_place_of_the_model(run, tiny, prompts, tmp_path):
    with serving(Stub()) as url:
        seen = run(tiny, "--prompts", prompts, "--server", url, "--max-tokens", "60")
    assert seen.code == 0, seen.err
    runner = load(str(tiny), max_len=64)
    samples = read_samples(tmp_path / "data")
    answers = {runner.tokenizer.decode(samples.tokens(n)[samples.response(n) :].tolist()) for n in range(len(samples))}
    assert answers == {f"You said: {text}" for text in PROMPTS}


def test_a_server_that_dies_leaves_what_is_whole_and_the_same_command_goes_on(
    run, tiny, prompts, tmp_path, monkeypatch
):
    monkeypatch.setattr(train_data, "SHARD_SAMPLES", 2)
    monkeypatch.setattr(remote, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(remote, "Server", lambda **settings: _Server(**settings, wait=0.01))
    stub = Stub(lambda body: (503, "gone") if len(stub.asked) > 3 else completion(body))
    with serving(stub) as url:
        line = run(
            tiny, "--prompts", prompts, "--server", url, "--max-tokens", "60", "--batch", "1"
        ).check_one_line_error()
        assert "does not answer" in line
        assert len(read_samples(tmp_path / "data")) == 2
        stub.answer = completion
        assert run(tiny, "--prompts", prompts, "--server", url, "--max-tokens", "60").code == 0
    assert len(read_samples(tmp_path / "data")) == 5


_Server = remote.Server


def test_help_shows_the_command(capsys):
    assert "Have prompts answered by a model" in run_cli(capsys, "train", "--help").out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "There are no prompts: give --prompts FILE"),
        (["--prompts", "gone.jsonl"], "Cannot read the file gone.jsonl: No such file"),
        (["--self", "2", "--server", "http://localhost:1"], "cannot go with --server"),
        (["--self", "2", "--temperature", "warm"], "--temperature 'warm'"),
        (["--self", "2", "--weight", "self"], "expected NAME=WEIGHT"),
        (["--self", "2", "--weight", "elf=2"], "Did you mean 'self'"),
        (["--self", "2", "--max-len", "8"], "leaves no room for a prompt"),
        (["--self", "2", "--max-len", "5000"], "the model's context holds 512"),
        (["--self", "2", "--no-thinking"], "knows no enable_thinking"),
        (["--hub", "owner/set"], "expected NAME:COLUMN"),
    ],
)
def test_bad_input_is_one_line(run, tiny, words, part):
    assert part in run(tiny, *words).check_one_line_error()


def test_an_empty_file_of_prompts_is_one_line(run, tiny, tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    assert "empty.jsonl holds no prompts" in run(tiny, "--prompts", tmp_path / "empty.jsonl").check_one_line_error()


def test_a_target_that_has_gone_or_changed_is_one_line(run, tiny, prompts, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(tiny, model)
    assert run(model, "--prompts", prompts).code == 0
    write_tiny_model(model, seed=3)
    assert "another target: its files have changed" in run(model, "--prompts", prompts).check_one_line_error()
    shutil.rmtree(model)
    assert "There is no file or folder" in run(model, "--prompts", prompts).check_one_line_error()


def test_other_settings_for_the_same_folder_are_one_line(run, tiny, prompts):
    assert run(tiny, "--prompts", prompts).code == 0
    line = run(tiny, "--prompts", prompts, "--seed", "5").check_one_line_error()
    assert "seed 0, now 5" in line
