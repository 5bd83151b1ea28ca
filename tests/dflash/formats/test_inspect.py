"""``outrider inspect``: what it tells of a drafter and a pair, the flags for other engines, and its exit codes."""

import json
import subprocess
import sys

import pytest
from dflash.drafter_files import change_config, write_drafter
from dflash.formats.drafters import DFLASH2, DSPARK
from dflash.formats.gguf_files import write_gguf_drafter
from tiny_model import write_tiny_model

from outrider.checkpoint import resolve
from outrider.checkpoint.known import KNOWN
from outrider.commands.drafter_facts import NamedTarget, drafter_facts
from outrider.commands.models import size_text
from outrider.models.dflash.formats import examine

PLAIN = {"attention_bias": False}


CARD = """---
license: mit
base_model: Qwen/Qwen3-8B
datasets:
  - first/set
  - "second/set"
tags: [dflash, draft]
---
# A drafter

- **Trained** on 800 K samples for 6 epochs, responses regenerated without thinking.
Nothing to see here.
| tokens | in a table |
"""


def test_everything_about_a_drafter_is_told(run, tmp_path, target_folder):
    folder = write_drafter(tmp_path, attention_sink_bias=True, final_logit_softcapping=30.0)
    (folder / "README.md").write_text(CARD)
    seen = run(folder, "--target", target_folder)
    assert seen.code == 0
    for part in (
        "z-lab",
        "4 of 16, keys and values 2",
        "theta 700, yarn x2.0",
        "6 slots, 5 tokens a round; the anchor's slot predicts nothing",
        "token 264",
        "nothing; embeddings and head are the target's",
        "logits capped at 30, attention sinks, biases in attention",
        "window of 12",
        "only what is before",
        "taps of a target of 2 layers",
        "datasets: first/set, second/set",
        "tags: dflash, draft",
        "Trained on 800 K samples for 6 epochs",
        f"It is run here, and fits {target_folder}.",
        "vllm serve",
        "--speculative-algorithm DFLASH",
        "It cannot run this drafter.",
    ):
        assert part in seen.out, part
    assert "Nothing to see" not in seen.out
    assert "in a table" not in seen.out


def test_parameters_and_memory_are_those_of_the_files(facts, tmp_path):
    folder = write_drafter(tmp_path)
    found, code = facts(folder)
    shape = found["shape"]
    assert code == 0
    assert found["stored"] == {"F32": 4 * shape["parameters"]}
    by_dtype = {need["dtype"]: need for need in shape["memory"]}
    # Keys and values, 3 layers, 2 heads of 16, 2 bytes, 1000 tokens.
    assert by_dtype["bfloat16"]["kv_per_1000_tokens"] == 2 * 3 * 2 * 16 * 2 * 1000
    assert found["runs"] is True
    assert (found["target"], found["fits"]) == (None, None)


def test_layers_are_told_one_by_one(facts, tmp_path):
    found, _ = facts(write_drafter(tmp_path))
    assert found["shape"]["layers"] == [
        {"layer": 0, "window": 12, "causal": True},
        {"layer": 1, "window": None, "causal": False},
        {"layer": 2, "window": 12, "causal": True},
    ]


def test_taps_are_told_in_every_convention(facts, tmp_path):
    folder = write_drafter(tmp_path, target_layer_ids=[1, 9, 17], num_target_layers=36)
    taps = facts(folder)[0]["shape"]["taps"]
    as_written = {name for name, ids in taps.items() if ids == [1, 9, 17]}
    shifted = {name for name, ids in taps.items() if ids == [2, 10, 18]}
    assert as_written | shifted == set(taps)
    assert [any(engine in name for name in as_written) for engine in ("z-lab", "SGLang", "DeepSpec")] == [True] * 3
    others = ("Transformers", "speculators", "vLLM", "llama.cpp", "onnxruntime")
    assert [any(engine in name for name in shifted) for engine in others] == [True] * 5


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        (DFLASH2, "dflash2", "convolution over 2 slots, groups of 4"),
        (DFLASH2, "dflash2", "selector of rank 6 over 5 candidates"),
        (DSPARK, "dspark", "vanilla Markov head of rank 6"),
        (DSPARK, "dspark", "confidence head"),
        ({"input_embedding_scale": 2.0}, "dflash", "embeddings times 2"),
    ],
)
def test_what_is_not_the_usual_is_told(facts, tmp_path, changes, kind, words):
    shape = facts(write_drafter(tmp_path, **changes))[0]["shape"]
    assert shape["kind"] == kind
    assert words in shape["settings"]


def test_what_it_brings_is_told(facts, tmp_path):
    shape = facts(write_drafter(tmp_path, draft_vocab_size=80))[0]["shape"]
    assert shape["own"] == ["head of 80 words"]


def test_all_problems_are_told_not_only_the_first_and_the_exit_code_is_2(run, tmp_path, target_folder):
    folder = write_drafter(
        tmp_path, frobnicate=1, use_sliding_window=False, num_target_layers=36, target_layer_ids=[30]
    )
    seen = run(folder, "--target", target_folder)
    assert seen.code == 2
    assert seen.err == ""
    for part in (
        "problem: target_layer_ids: 30 lies beyond the target's layers=2",
        "problem: num_target_layers: ",
        "[--allow num_target_layers]",
        "problem: frobnicate: ",
        "problem: use_sliding_window: ",
        "It is not run here until the problems above are gone or allowed.",
        "window of 12",
        "not known: How it was trained, until the problems above are gone.",
    ):
        assert part in seen.out, part


def test_a_config_that_cannot_be_had_leads_to_repair(run, tmp_path, target_folder):
    folder = write_drafter(tmp_path, mask_token_id=None)
    assert f"try outrider repair {folder} --target {target_folder}." in run(folder, "--target", target_folder).out
    misfit = write_drafter(tmp_path / "misfit", num_target_layers=36)
    assert "outrider repair" not in run(misfit, "--target", target_folder).out


def test_what_drafter_and_pair_both_say_is_told_once(run, tmp_path, target_folder):
    seen = run(write_drafter(tmp_path, target_layer_ids=[0, 1]), "--target", target_folder)
    assert seen.out.count("problem: last_block_tap: ") == 1


def test_a_target_that_does_not_fit_is_in_no_command(engines, tmp_path, target_folder):
    fitting = engines(write_drafter(tmp_path), "--target", target_folder)
    assert f"vllm serve {target_folder} " in fitting["vLLM"]["command"]
    other = engines(write_drafter(tmp_path, num_target_layers=36), "--target", target_folder)
    assert "vllm serve TARGET " in other["vLLM"]["command"]


def test_a_known_name_is_the_hubs_in_commands_for_other_engines(tmp_path, target):
    found = examine(resolve(str(write_drafter(tmp_path))))
    facts = drafter_facts("d", found, target=NamedTarget("smollm2-135m", "llama", target.decoder.shape))
    assert facts.target == "smollm2-135m"
    assert f"vllm serve {KNOWN['smollm2-135m'].hub} " in facts.engines[0].command


def test_what_an_engine_needs_is_told_only_where_it_runs_the_drafter(run, tmp_path):
    seen = run(write_gguf_drafter(tmp_path / "d.gguf", PLAIN))
    vllm = seen.out.partition("vLLM: ")[2].partition("SGLang: ")[0]
    assert "It cannot run this drafter." in vllm
    assert "differs: It reads folders" in vllm
    assert "needs: " not in vllm


def test_what_is_allowed_is_told_and_is_no_refusal(facts, run, tmp_path):
    folder = write_drafter(tmp_path, frobnicate=1)
    found, code = facts(folder, "--allow", "frobnicate")
    assert (code, found["runs"]) == (0, True)
    assert [(problem["key"], problem["allowed"]) for problem in found["problems"]] == [("frobnicate", True)]
    assert "allowed: frobnicate: " in run(folder, "--allow", "frobnicate").out


def test_a_drafter_without_a_shape_still_shows_what_there_is(run, facts, tmp_path):
    folder = change_config(write_drafter(tmp_path), "hidden_size")
    seen = run(folder)
    assert seen.code == 2
    assert "problem: hidden_size: expected a whole number of at least 1, found none" in seen.out
    assert "z-lab" in seen.out
    found, _ = facts(folder)
    assert (found["shape"], found["engines"]) == (None, [])


def test_a_target_whose_family_is_not_run_here_is_compared_by_its_sizes(facts, tmp_path):
    folder = write_drafter(tmp_path / "drafter", num_target_layers=64, target_layer_ids=[1, 61])
    target = write_tiny_model(tmp_path / "target")
    sizes = {"hidden_size": 32, "num_hidden_layers": 64, "vocab_size": 265, "max_position_embeddings": 512}
    raw = {"model_type": "qwen3_next", "text_config": sizes | {"num_attention_heads": 4}}
    (target / "config.json").write_text(json.dumps(raw))
    found, code = facts(folder, "--target", target)
    assert (code, found["fits"]) == (0, True)
    sglang = next(engine for engine in found["engines"] if engine["engine"] == "SGLang")
    assert "--mamba-radix-cache-strategy extra_buffer" in sglang["command"]
    raw["text_config"]["hidden_size"] = 64
    (target / "config.json").write_text(json.dumps(raw))
    found, code = facts(folder, "--target", target)
    assert (code, found["fits"]) == (2, False)


def test_what_storage_costs_is_noted(facts, tmp_path):
    coarse = write_gguf_drafter(tmp_path / "q4.gguf", PLAIN, kind="Q4_0")
    assert any("lose acceptance below Q8" in note for note in facts(coarse)[0]["notes"])
    half = write_gguf_drafter(tmp_path / "f16.gguf", PLAIN, kind="F16")
    assert any("stored as F16" in note for note in facts(half)[0]["notes"])


@pytest.mark.parametrize("card", ["", "no header", "---\nbroken: [\n---\n", "---\n---\n", "\xff"])
def test_a_card_that_says_nothing_is_no_harm(facts, tmp_path, card):
    folder = write_drafter(tmp_path)
    (folder / "README.md").write_bytes(card.encode("latin-1"))
    assert facts(folder)[0]["card"] == []


def test_a_long_card_is_cut(facts, tmp_path):
    folder = write_drafter(tmp_path)
    (folder / "README.md").write_text("\n".join(f"trained {'x' * 500} {n}" for n in range(50)))
    card = facts(folder)[0]["card"]
    assert len(card) == 12
    assert max(map(len, card)) == 240


def test_no_drafter_and_no_target_are_one_line(run, tmp_path, target_folder):
    run(target_folder).check_one_line_error()
    run(tmp_path / "absent").check_one_line_error()
    folder = write_drafter(tmp_path / "drafter")
    run(folder, "--target", tmp_path / "absent").check_one_line_error()
    target = write_tiny_model(tmp_path / "odd")
    (target / "config.json").write_text(json.dumps({"model_type": "x", "hidden_size": 1, "num_hidden_layers": 1,
                                                   "num_attention_heads": 1, "vocab_size": 2}))  # fmt: skip
    assert "max_position_embeddings" in run(folder, "--target", target).check_one_line_error()


def test_it_needs_no_torch(tmp_path, target_folder):
    folder = write_drafter(tmp_path)
    code = (
        "import sys; sys.modules['torch'] = None; from outrider.cli import run;"
        f"sys.exit(run(['inspect', {str(folder)!r}, '--target', {str(target_folder)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_sizes_are_told_as_for_models(run, facts, tmp_path):
    folder = write_drafter(tmp_path)
    stored = facts(folder)[0]["stored"]["F32"]
    assert f"F32 {size_text(stored)}" in run(folder).out
