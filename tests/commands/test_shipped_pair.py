"""The trained pair that comes with the package: smollm2-135m and its DFlash drafter."""

import json

import pytest

from outrider.checkpoint import resolve
from outrider.checkpoint.shipped import SHIPPED, shipped_folder, shipped_for
from outrider.compare import compare
from outrider.drafters.options import DraftOptions
from outrider.engine.params import SamplingParams
from outrider.models.dflash.formats import read_drafter
from outrider.runner import load

DRAFTER = "smollm2-135m-dflash"
PROMPTS = (
    "Explain in three sentences why the sky is blue.",
    "Tom has 5 boxes with 12 pencils each and gives away 17 pencils. How many are left? Think step by step.",
    "Write a short letter to a neighbour who plays the trumpet at night.",
    "Summarise: the harbour freezes for nine weeks a year; an ice breaker keeps a channel open for the fishing boats.",
)


def chats(runner):
    return [runner.encode([{"role": "user", "content": prompt}]) for prompt in PROMPTS]


@pytest.fixture(scope="module")
def pair():
    return load("smollm2-135m", draft_model=DRAFTER, max_len=512)


def test_it_is_found_by_name_and_by_its_target():
    assert shipped_for("smollm2-135m") == DRAFTER
    assert shipped_for("other") is None
    source = resolve(DRAFTER)
    assert (source.path, source.kind) == (shipped_folder(DRAFTER), "folder")


def test_what_is_shipped_is_small_slides_everywhere_and_comes_with_its_log_and_card():
    for name in SHIPPED:
        folder = shipped_folder(name)
        assert (folder / "model.safetensors").stat().st_size < 36_000_000
        assert "acceptance length" in (folder / "README.md").read_text().lower()
        evaluations = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert sum(line["kind"] == "evaluation" for line in evaluations) >= 4
        config = read_drafter(resolve(name)).config
        assert {(layer.window, layer.causal) for layer in config.layers} == {(128, True)}


def test_it_fits_its_target_by_their_headers(run):
    seen = run("inspect", DRAFTER, "--target", "smollm2-135m", "--json")
    assert seen.code == 0
    assert json.loads(seen.out)["problems"] == []


def test_the_report_of_its_run_says_that_more_training_helps(run):
    seen = run("train", "report", str(shipped_folder(DRAFTER) / "metrics.jsonl"), "--json")
    assert seen.code == 0
    assert json.loads(seen.out)["status"] == "improving"


@pytest.mark.model
def test_a_drafter_of_the_pair_needs_no_name(run):
    seen = run(
        "compare", "smollm2-135m", "Count from one to twenty.", "--drafter", "dflash", "--max-tokens", "24", "--json"
    )
    assert seen.code == 0
    result = json.loads(seen.out)
    assert result["drafting"]["model"] == DRAFTER
    assert result["methods"][1]["texts_equal"]


@pytest.mark.model
@pytest.mark.parametrize(
    ("drafter", "options", "least"),
    [("dflash", DraftOptions(tokens=7), 1.9), ("ddtree", DraftOptions(budget=31), 2.4)],
)
def test_texts_are_equal_and_the_acceptance_length_is_that_of_a_trained_drafter(pair, drafter, options, least):
    # Measured on 271 other prompts: docs/benchmarks.md; the bounds leave room for four texts.
    runner = load("smollm2-135m", draft_model=DRAFTER, draft=options, max_len=512)
    found = compare(runner, chats(runner), [drafter], SamplingParams(max_tokens=64))
    assert found.comparison.methods[1].texts_equal or not found.real_differences
    assert found.comparison.methods[1].acceptance_length > least


@pytest.mark.model
def test_texts_of_the_pair_are_equal_in_a_ragged_batch(pair):
    options = DraftOptions(budget=15)
    plain = pair.generate_many(chats(pair), SamplingParams(max_tokens=40))
    runner = load("smollm2-135m", drafter="ddtree", draft_model=DRAFTER, draft=options, slots=4, max_len=256)
    batched = runner.generate_many(chats(runner), SamplingParams(max_tokens=40))
    assert [one.text for one in batched] == [one.text for one in plain]


@pytest.mark.model
def test_without_its_windows_the_pair_loses_at_long_contexts_and_stays_exact(pair):
    from dataclasses import replace

    from outrider.replay import record, replay

    long_prompt = " ".join(f"Line {n}: the {n}th boat carried {3 * n} crates of apples." for n in range(1, 21))
    prompts = [pair.encode([{"role": "user", "content": f"{long_prompt}\n\n{prompt}"}]) for prompt in PROMPTS[:3]]
    recording = record(pair.target, prompts, max_tokens=64, stop_ids=pair.tokenizer.stop_ids)
    network = pair.loaded.network
    open_layers = tuple(replace(layer, window=None) for layer in network.config.layers)
    trained = replay(network, recording).acceptance().length
    ignored = replay(network.variant(replace(network.config, layers=open_layers)), recording).acceptance().length
    assert ignored < trained
