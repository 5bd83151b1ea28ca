"""Plans: round times against what one H200 measured, the story of a disappointing drafter, where numbers come from."""

import json
import shlex

import pytest
from command_line import run_cli
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import write_tiny_model

from outrider.checkpoint import open_checkpoint, resolve
from outrider.planning import hardware
from outrider.planning.expected import as_tree, measured, published
from outrider.planning.hardware import device
from outrider.planning.sizes import of_files, sizes
from outrider.planning.traffic import ERROR, Drafting, Load, matrices, round_time

TARGET = "Qwen/Qwen3.6-27B"
# Measured 2026-12-01 on one NVIDIA H200 (driver 580.159.04, torch 2.11.0+cu130) at the shapes of Qwen3.6-27B in bf16,
# random weights: all weight matrices of one pass through cuBLAS in a CUDA graph, milliseconds by number of tokens.
MATRICES_MS = {
    1: 14.13, 4: 14.41, 8: 14.52, 16: 14.69, 32: 14.77, 48: 15.24, 64: 15.47, 96: 16.49, 128: 17.08, 256: 24.72,
}  # fmt: skip
# The same card, vLLM 0.26.0, CUDA graphs, batch 1, prompt 512, tokens 65 to 512 of the answer: milliseconds a round.
VLLM_MS = {None: (0, 15.30), "mtp": (3, 19.35), "dflash": (15, 27.0)}
MEASURED_CONTEXT = 800
# Bounds by bytes at 4.3 TB/s and 4096 tokens of context, perfect streaming: milliseconds.
FLOOR_MS = {None: (0, 12.05), "mtp": (3, 14.46), "dflash": (15, 13.49)}


@pytest.fixture(scope="module")
def target():
    return sizes(TARGET)


def rounds(target, one, load, method, nodes, engine):  # noqa: PLR0917 -- as the tables have it
    drafter = target.drafter if method == "dflash" else None
    return (
        round_time(target, one, load, Drafting(method=method, nodes=nodes, drafter=drafter), engine=engine).total * 1e3
    )


@pytest.mark.parametrize(("tokens", "ms"), MATRICES_MS.items())
def test_matrices_take_what_an_h200_measured(target, tokens, ms):
    assert matrices(target, device("h200"), tokens) * 1e3 == pytest.approx(ms, rel=ERROR)


@pytest.mark.parametrize("method", VLLM_MS)
def test_rounds_of_vllm_take_what_an_h200_measured(target, method):
    nodes, ms = VLLM_MS[method]
    load = Load(context=MEASURED_CONTEXT)
    assert rounds(target, device("h200"), load, method, nodes, "vllm") == pytest.approx(ms, rel=ERROR)


@pytest.mark.parametrize("method", FLOOR_MS)
def test_an_ideal_engine_takes_the_bound_of_its_bytes(target, method):
    nodes, ms = FLOOR_MS[method]
    perfect = hardware.Device(
        name="x", memory=1e12, copy=4.3e12, streamed=1.0, flops=1e30, measured=True, source=""
    )  # fmt: skip
    assert rounds(target, perfect, Load(), method, nodes, "ideal") == pytest.approx(ms, rel=0.01)


@given(st.integers(1, 200), st.integers(1, 64), st.integers(1, 8))
def test_rounds_grow_with_what_they_verify_and_shrink_with_devices(nodes, batch, devices):
    one, size = device("h100"), sizes(TARGET)
    mine = rounds(size, one, Load(batch=batch), "ngram", nodes, "vllm")
    assert mine <= rounds(size, one, Load(batch=batch + 1), "ngram", nodes, "vllm")
    assert mine <= rounds(size, one, Load(batch=batch), "ngram", nodes + 1, "vllm")
    assert matrices(size, one, nodes, devices) == pytest.approx(matrices(size, one, nodes) / devices)


def plan(capsys, *words):
    seen = run_cli(capsys, "plan", *words, "--json")
    assert seen.code == 0, seen.err
    return json.loads(seen.out)


def option(found, engine, method, part=""):
    return next(o for o in found["options"] if (o["engine"], o["method"]) == (engine, method) and part in o["name"])


STORY = (TARGET, "--gpu", "h200", "--engine", "vllm=0.20.1", "--engine", "sglang", "--engine", "outrider")


def test_the_story_of_a_drafter_that_disappoints(capsys):
    found = plan(capsys, *STORY, "--accept", "dflash=1.21")
    now = option(found, "vllm", "dflash", "as it is")
    later = option(found, "vllm", "dflash", "mended or finished")
    mtp, tree = option(found, "sglang", "mtp"), option(found, "outrider", "ddtree")
    speeds = [one["tokens_per_second"]["value"] for one in (tree, later, mtp, now)]
    assert speeds == sorted(speeds, reverse=True)
    # Now it is slower than not drafting at all; that is what the break-even says too.
    assert now["tokens_per_second"]["high"] < option(found, "vllm", "plain")["tokens_per_second"]["low"]
    assert now["tokens_per_round"]["value"] < now["break_even"]
    assert mtp["tokens_per_round"]["low"] > mtp["break_even"]
    assert (now["effort"], later["effort"]) == ("minutes", "days")
    assert any("outrider doctor" in risk for risk in now["risks"])
    assert any("taps" in risk or "length on an 8B target" in risk for risk in later["risks"])
    assert any("does not offer ddtree" in line for line in found["left_out"])


def test_every_number_says_where_it_comes_from(capsys):
    found = plan(capsys, *STORY, "--accept", "dflash=1.21", "--speed", "mtp@sglang=73.5")
    assert option(found, "vllm", "dflash", "as it is")["tokens_per_round"]["how"] == "measured"
    mtp = option(found, "sglang", "mtp")
    assert (mtp["tokens_per_round"]["how"], mtp["tokens_per_second"]["how"]) == ("published", "measured")
    assert mtp["tokens_per_second"]["value"] == 73.5
    for one in found["options"]:
        for key in ("tokens_per_round", "round_ms", "tokens_per_second"):
            figure = one[key]
            assert figure["low"] <= figure["value"] <= figure["high"]
            assert figure["source"] or one["method"] == "plain"


def test_a_measured_speed_scales_what_is_modelled(capsys):
    plain, scaled = plan(capsys, *STORY), plan(capsys, *STORY, "--speed", "mtp@sglang=73.5")
    before, after = (option(one, "vllm", "plain")["round_ms"]["value"] for one in (plain, scaled))
    assert after / before == pytest.approx(scaled["scale"])
    assert scaled["scale"] > 1.5
    assert plain["scale"] is None


def test_commands_can_be_typed(capsys):
    found = plan(capsys, *STORY)
    words = shlex.split(option(found, "vllm", "mtp")["command"])
    assert json.loads(words[-1]) == {"method": "mtp", "num_speculative_tokens": 3}
    assert "--speculative-num-draft-tokens 16" in option(found, "sglang", "dflash")["command"]


def test_several_devices_share_the_weights_and_leave_the_embedded_engine_out(capsys):
    one, two = plan(capsys, TARGET, "--gpu", "h100"), plan(capsys, TARGET, "--gpu", "h100", "--gpus", 2)
    assert option(two, "vllm", "plain")["round_ms"]["value"] < option(one, "vllm", "plain")["round_ms"]["value"]
    assert "--tensor-parallel-size 2" in option(two, "vllm", "plain")["command"]
    assert not any(o["engine"] == "outrider" for o in two["options"])
    assert not option(plan(capsys, TARGET, "--gpu", "rtx4090"), "vllm", "plain")["fits"]


def test_a_model_whose_files_are_here_is_sized_by_its_headers(tmp_path):
    folder = write_tiny_model(tmp_path / "tied", tie_word_embeddings=True)
    checkpoint = open_checkpoint(resolve(str(folder)))
    found = of_files(checkpoint)
    every = sum(info.nbytes for info in checkpoint.tensors.values())
    table = next(t.nbytes for n, t in checkpoint.tensors.items() if "embed_tokens" in n)
    assert found.resident == every
    assert found.weights in (every, every - table)  # a head of its own, or the table as head
    assert found.kv == 2 * 2 * 2 * 2 * 8  # keys and values, bf16, two layers, two heads of eight
    assert (found.state, found.hybrid, found.layers) == (0, False, 2)


def test_the_shapes_of_recurrent_layers_give_their_states(tmp_path):
    from outrider.planning.sizes import _kinds, _kv, _state

    config = {
        "layer_types": ["linear_attention"] * 48 + ["full_attention"] * 16, "num_attention_heads": 24,
        "num_key_value_heads": 4, "head_dim": 256, "hidden_size": 5120, "linear_num_value_heads": 48,
        "linear_value_head_dim": 128, "linear_key_head_dim": 128,
    }  # fmt: skip
    known = sizes(TARGET)
    assert _kv(config, 16) == known.kv
    assert _state(config, 48) == pytest.approx(known.state, rel=0.01)
    assert len(_kinds(config)) == known.layers


def test_this_machine_is_found_and_its_drafter_read(capsys, tmp_path):
    from dflash.drafter_files import write_drafter

    target, drafter = write_tiny_model(tmp_path / "t"), write_drafter(tmp_path / "d")
    found = plan(capsys, target, "--here", "--drafter", drafter, "--accept", "dflash:5=2.5")
    assert option(found, "outrider", "dflash")["tokens_per_round"]["value"] == 2.5
    assert found["hardware"]


def test_the_table_names_all_marks(capsys):
    seen = run_cli(capsys, "plan", *STORY, "--speed", "mtp@sglang=73.5")
    assert "* measured, ^ published, ~ modelled." in seen.out
    assert "74*" in seen.out


BAD = [
    ([], "Give --gpu"),
    (["--gpu", "h201"], "Did you mean 'h200'"),
    (["--gpu", "h200", "--accept", "mtp"], "expected METHOD"),
    (["--gpu", "h200", "--accept", "mtp:3=5"], "from 1 to TOKENS"),
    (["--gpu", "h200", "--accept", "mpt=2"], "Did you mean 'mtp'"),
    (["--gpu", "h200", "--speed", "mtp=3"], "METHOD@ENGINE"),
    (["--gpu", "h200", "--drafter", "nowhere/folder"], "whose files are here"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_cannot_be_planned_is_one_line(capsys, words, said):
    assert said in run_cli(capsys, "plan", TARGET, *words).check_one_line_error()


def test_a_target_that_is_nowhere_is_told(capsys):
    seen = run_cli(capsys, "plan", "org/unknown", "--gpu", "h200")
    assert "fetch it: outrider models pull" in seen.check_one_line_error()


def test_figures_of_other_targets_are_marked():
    assert published("org/other", "dflash").foreign
    assert not published(TARGET, "dflash").foreign
    assert as_tree(measured("dflash:7=2")).high == 2.5
