"""The flags that ``outrider inspect`` gives for vLLM, SGLang and llama.cpp, and what it says that they cannot do."""

import json
import shlex

import pytest
from dflash.drafter_files import write_drafter
from dflash.formats.drafters import DFLASH2, DSPARK
from dflash.formats.gguf_files import write_gguf_drafter
from dflash.formats.test_speculators import write_speculators
from tiny_model import write_tiny_model

SLIDING = {"layer_types": ["sliding_attention"] * 3}
PLAIN = {"attention_bias": False}


def test_the_flags_of_vllm_ask_for_one_token_less_than_the_block(engines, tmp_path):
    command = engines(write_drafter(tmp_path))["vLLM"]["command"]
    words = shlex.split(command)
    assert words[0] == "VLLM_USE_V2_MODEL_RUNNER=1"
    speculative = json.loads(words[words.index("--speculative-config") + 1])
    assert speculative == {"method": "dflash", "model": str(tmp_path), "num_speculative_tokens": 5}


def test_only_mixed_windows_and_successors_need_the_second_runner_of_vllm(engines, tmp_path):
    assert engines(write_drafter(tmp_path / "uniform", **SLIDING))["vLLM"]["command"].startswith("vllm serve")
    dspark = engines(write_drafter(tmp_path / "dspark", **SLIDING, **DSPARK))["vLLM"]["command"]
    assert dspark.startswith("VLLM_USE_V2_MODEL_RUNNER=1 vllm serve")
    assert '"method": "dspark"' in dspark
    assert '"num_speculative_tokens": 6' in dspark


def test_the_flags_of_sglang_count_the_anchor(engines, tmp_path):
    assert "--speculative-num-draft-tokens 6" in engines(write_drafter(tmp_path / "a"))["SGLang"]["command"]
    dspark = engines(write_drafter(tmp_path / "b", **DSPARK))["SGLang"]["command"]
    assert "DSPARK --speculative-dspark-block-size 6" in dspark
    assert "--speculative-num-draft-tokens 7" in dspark


def test_the_flags_of_llama_cpp_convert_and_ask_for_all_tokens(engines, tmp_path, target_folder):
    command = engines(write_drafter(tmp_path, **PLAIN), "--target", target_folder)["llama.cpp"]["command"]
    assert f"--target-model-dir {target_folder}" in command
    assert "--spec-type draft-dflash --spec-draft-n-max 5" in command


# The drafter, the engine, and a line that must be said; each is a fault of the lists of the engines.
SAID = [
    (PLAIN, "llama.cpp", "differs", "sliding layers, trained causal in the block, run as not causal"),
    ({"attention_bias": True}, "llama.cpp", "differs", "no biases"),
    (PLAIN | {"use_sliding_window": None}, "llama.cpp", "needs", "windows are dropped in silence"),
    (PLAIN | SLIDING, "llama.cpp", "needs", '"is_causal": true in config.json before converting'),
    (DSPARK | {"markov_head_type": "rnn"}, "llama.cpp", "differs", "vanilla ones, not rnn"),
    ({"partial_rotary_factor": 0.25}, "vLLM", "differs", "rotates a part of each head"),
    ({"target_layer_ids": [2, 0], "num_target_layers": 4}, "vLLM", "differs", "fc reads the wrong columns"),
    ({"target_layer_ids": [2, 0], "num_target_layers": 4}, "SGLang", "unknown", "order of the taps"),
    ({"is_causal": False}, "vLLM", "needs", "0.28 or later, which honours is_causal"),
    ({"causal": False}, "vLLM", "needs", "0.23 or later, which honours dflash_config.causal"),
    ({"attention_value_scale": 0.7}, "vLLM", "needs", "0.31 or later"),
    ({"attention_sink_bias": True}, "vLLM", "needs", "0.25 or later, which honours attention_sink_bias"),
    ({"attention_sink_bias": True}, "SGLang", "unknown", "attention sinks"),
    ({"sample_from_anchor": True}, "vLLM", "differs", "rejects DFlash drafters whose anchor predicts"),
    ({"output_multiplier": 0.5}, "vLLM", "unknown", "scales and the cap"),
    ({"target_layer_ids": [1]}, "vLLM", "unknown", "before or after the final norm"),
    (DFLASH2, "vLLM", "needs", "0.28 or later for DFlash2"),
    (DSPARK, "vLLM", "needs", "0.27 or later for DSpark"),
]


@pytest.mark.parametrize("case", SAID)
def test_what_an_engine_needs_or_cannot_do_is_said(engines, tmp_path, case):
    changes, engine, part, words = case
    found = engines(write_drafter(tmp_path, **changes))[engine]
    assert any(words in line for line in found[part]), found
    assert found["as_trained"] is not True or part == "needs"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sliding_window_non_causal": False}, "full layers causal too"),
        ({"sliding_window_non_causal": None}, "for true where it is absent"),
    ],
)
def test_s5_what_vllm_makes_of_speculators_causality_is_said(engines, tmp_path, changes, words):
    found = engines(write_speculators(tmp_path, **changes))
    assert any(words in line for line in found["vLLM"]["differs"])
    assert "does not know the speculators format" in found["llama.cpp"]["differs"][0]
    assert found["llama.cpp"]["command"] == ""


def test_a_plain_drafter_is_run_as_trained_by_all(engines, tmp_path, target_folder):
    folder = write_drafter(tmp_path, **PLAIN, layer_types=["full_attention"] * 3, sliding_window=None)
    found = engines(folder, "--target", target_folder)
    assert {engine: one["as_trained"] for engine, one in found.items()} == dict.fromkeys(found, True)


def test_a_target_that_llama_cpp_does_not_tap_is_said(engines, tmp_path):
    target = write_tiny_model(tmp_path / "target", "qwen2")
    found = engines(write_drafter(tmp_path / "drafter", **PLAIN), "--target", target)["llama.cpp"]
    assert found["command"] == ""
    assert any("Targets of type qwen2" in line for line in found["differs"])


def test_a_gguf_drafter_is_for_llama_cpp_alone(engines, facts, tmp_path):
    path = write_gguf_drafter(tmp_path / "d.gguf", PLAIN, **{"general.name": None})
    found = engines(path)
    assert (found["vLLM"]["command"], found["SGLang"]["command"]) == ("", "")
    assert f"-md {path} --spec-type draft-dflash --spec-draft-n-max 5" in found["llama.cpp"]["command"]
    assert facts(path)[0]["format"] == "gguf"
