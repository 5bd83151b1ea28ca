"""Prometheus text, whole and broken, and what is counted between two looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.adapters import ADAPTERS, Counts, adapter_of_metrics
from outrider.adapters.metrics import read_metrics

VLLM = """# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 40.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 60.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.7961348600613523e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 280.0
vllm:spec_decode_num_draft_tokens_total{engine="1",model_name="m"} 420.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 150.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 50.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 80.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="10"} 9.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 250.0
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:e2e_request_latency_seconds_bucket{engine="0",le="0.3",model_name="m"} 0.0
"""


def counts(text):
    samples = read_metrics(text)
    return adapter_of_metrics(samples).counts(samples)


def test_vllms_engines_are_summed_and_positions_put_in_order():
    found = counts(VLLM)
    assert (found.rounds, found.drafted, found.accepted, found.model) == (100.0, 700.0, 150.0, "m")
    assert found.per_position == (80.0, 50.0)
    part = found.part()
    assert part["prefix_cache_hit_rate"] == 0.25
    assert part["accepted_per_position"] == [80.0, 50.0]


def test_sglangs_lengths_are_those_of_its_last_window():
    found = counts(
        'sglang:spec_accept_length{model_name="m"} 3.5\nsglang:spec_accept_rate{model_name="m"} 0.167\n'
        'sglang:num_running_reqs{model_name="m"} 4\n'
    )
    assert found.part()["mean_acceptance_length"] == 3.5
    assert (found.rate, found.running) == (0.167, 4)


def test_llama_cpp_counts_rounds_by_position():
    text = "".join(
        f"llamacpp:spec_decode_num_{name} {value}\n"
        for name, value in (("drafts_total", 10), ("draft_tokens_total", 70), ("accepted_tokens_total", 22))
    )
    text += 'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 8\n'
    found = counts(text)
    assert (found.rounds, found.accepted, found.per_position) == (10, 22, (8,))


def test_half_an_answer_is_read_as_far_as_it_goes():
    half = VLLM[: VLLM.index('position="10"')]
    samples = read_metrics(half)
    assert samples.broken == 1
    assert ADAPTERS["vllm"].counts(samples).per_position == (80.0, 50.0)


def test_numbers_that_are_none_are_left_out():
    assert counts("vllm:num_requests_running NaN\nvllm:generation_tokens_total 4\n").running is None


def test_between_two_looks_counts_are_differences_and_gauges_the_newer():
    before = Counts(rounds=10, accepted=20, per_position=(8, 4), length=2.0, running=1)
    after = Counts(rounds=30, accepted=70, per_position=(20, 14), length=3.0, running=5)
    found = after.since(before)
    assert (found.rounds, found.accepted, found.per_position) == (20, 50, (12, 10))
    assert (found.length, found.running) == (3.0, 5)


@pytest.mark.parametrize("fallen", [{"rounds": 5, "accepted": 60}, {"rounds": 20, "per_position": (3, 1)}])
def test_counts_that_fall_tell_of_a_restart(fallen):
    assert Counts(**fallen).since(Counts(rounds=10, accepted=20, per_position=(8, 4))) is None


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text):
    read_metrics(text)


@given(st.integers(0, len(VLLM)), st.integers(0, len(VLLM)), st.text(max_size=5))
def test_no_damage_breaks_an_adapter(start, end, put):
    samples = read_metrics(VLLM[:start] + put + VLLM[end:])
    for adapter in ADAPTERS.values():
        adapter.counts(samples).part(seconds=1.0)


def test_positions_that_an_engine_tells_only_once_they_were_reached_are_counted_from_zero():
    now = Counts(rounds=10.0, per_position=(8.0, 3.0))
    assert now.since(Counts(rounds=0.0)).per_position == (8.0, 3.0)
    assert now.since(Counts(rounds=4.0, per_position=(5.0,))).per_position == (3.0, 3.0)
    assert Counts(rounds=12.0).since(now) is None


def test_counts_add_up_whatever_is_missing_on_one_side():
    total = Counts(rounds=1.0, per_position=(1.0,)).plus(Counts(rounds=2.0, accepted=3.0, per_position=(2.0, 1.0)))
    assert (total.rounds, total.accepted, total.drafted, total.per_position) == (3.0, 3.0, None, (3.0, 1.0))
