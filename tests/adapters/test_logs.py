"""Logs of three engines, whole and cut, pooled by counts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.adapters import ADAPTERS, adapter_of_log
from outrider.adapters.intervals import Interval, pooled
from outrider.adapters.lines import failure, plain

LOGS = Path(__file__).parent / "logs"
VLLM, SGLANG, LLAMA = ((LOGS / f"{name}.log").read_text("utf-8") for name in ("vllm", "sglang", "llama"))
INTERVAL = next(line for line in VLLM.splitlines() if "SpecDecoding" in line)


def part(text):
    return adapter_of_log(text).log(plain(text)).part


def test_vllms_intervals_are_pooled_by_their_rounds():
    counters = part(VLLM)["counters"]
    assert (counters["rounds"], counters["drafted"], counters["accepted"]) == (400, 1200, 300)
    assert counters["accepted_per_position"] == pytest.approx([0.5, 0.2, 0.05])
    assert (counters["tokens_per_second"], counters["prefix_cache_hit_rate"]) == (40.0, 0.125)


def test_vllms_start_tells_version_models_taps_and_draft_length():
    found = part(VLLM)
    assert found["engine"]["version"] == "0.32.0"
    assert found["engine"]["settings"] == {"enforce_eager": True, "auxiliary_layers": [2, 9]}
    assert (found["target"]["name"], found["drafter"]["name"], found["method"]) == ("/models/t", "/models/d", "dflash")
    assert found["speculation"]["num_speculative_tokens"] == 3
    assert found["traffic"]["concurrency"] == 4


def test_complaints_are_kept_and_what_healthy_servers_print_is_not():
    assert part(VLLM)["log"].endswith("something is falling back to the slow path")
    assert "non-default" not in part(VLLM)["log"]
    assert "error" not in part(VLLM)


def test_sglangs_windows_weigh_as_their_requests():
    found = part(SGLANG)
    assert found["counters"]["mean_acceptance_length"] == pytest.approx(2.5)
    assert found["counters"]["acceptance_rate"] == pytest.approx((0.2 + 3 * 0.07) / 4)
    assert (found["target"]["name"], found["drafter"]["name"]) == ("Q/T", "z/D")
    assert found["speculation"]["num_speculative_tokens"] == 15


def test_llama_cpp_s_requests_with_positions_on_a_line_of_their_own():
    found = part(LLAMA)
    counters = found["counters"]
    assert (counters["rounds"], counters["accepted"]) == (100, 75)
    assert counters["accepted_per_position"] == [0.5, 0.25]
    assert counters["tokens_per_second"] == 50.0
    assert (found["engine"]["version"], found["method"]) == ("11434", "dflash")
    assert found["speculation"]["num_speculative_tokens"] == 7


@pytest.mark.parametrize(
    "line",
    [
        "draft acceptance rate = 0.50000 (   10 accepted /   20 generated)",
        "draft acceptance = 0.5 ( 10 accepted / 20 generated), mean len = 2, acceptance rate per position = (0.6, 0.4)",
    ],
)
def test_older_spellings_of_llama_cpp(line):
    assert ADAPTERS["llama.cpp"].log([line]).part["counters"]["accepted"] == 10


def test_rounds_follow_from_drafts_of_one_length_or_from_the_printed_length():
    whole = Interval(accepted=300, drafted=700, length=4.0, per_position=(1.0,) * 7)
    assert whole.rounds == 100
    shorter_drafts = Interval(accepted=100, drafted=300, length=2.0, per_position=(0.7, 0.2, 0.1, 0.0))
    assert shorter_drafts.rounds == 100
    next_to_nothing = Interval(accepted=3, drafted=7000, length=1.0, per_position=(0.003,) + (0.0,) * 6)
    assert next_to_nothing.rounds == 1000


def test_no_interval_gives_no_counters():
    assert pooled([], [])["counters"]["rounds"] is None


def test_a_cut_line_is_counted_and_the_rest_read():
    cut = VLLM + INTERVAL[:120]
    logged = ADAPTERS["vllm"].log(plain(cut))
    assert logged.unread == 1
    assert logged.part["counters"]["rounds"] == 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Traceback\n  File x\nValueError: no good\n", "ValueError: no good"),
        ("(Worker pid=1) ERROR 12-01 [x.py:1] RuntimeError: mat1 and mat2", "RuntimeError: mat1 and mat2"),
        ("ggml_cuda: CUDA error: out of memory", "ggml_cuda: CUDA error: out of memory"),
        ("all is well", None),
    ],
)
def test_the_last_failure_is_found(text, said):
    assert failure(plain(text)) == said


def test_a_log_of_no_engine_has_no_adapter():
    assert adapter_of_log("hello\nworld") is None


@given(st.sampled_from([VLLM, SGLANG, LLAMA]), st.integers(0, 2000), st.integers(0, 2000), st.text(max_size=8))
def test_no_damage_breaks_an_adapter(text, start, end, put):
    damaged = text[:start] + put + text[end:]
    for adapter in ADAPTERS.values():
        assert isinstance(adapter.log(plain(damaged)).part, dict)
