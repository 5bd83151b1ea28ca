"""Servers that are read: well, silent, restarted, hanging, of no known kind."""

import json
from contextlib import suppress

import pytest
from doctor.engine_stub import serving

from outrider.doctor.intake import gather, server
from outrider.errors import UsageError

MODELS = json.dumps({"data": [{"id": "m", "root": "/models/t", "owned_by": "vllm"}]})


def vllm(rounds, accepted, *, positions=(0.0, 0.0)):
    spec = "vllm:spec_decode_num_"
    label = '{engine="0",model_name="m"}'
    lines = [
        f"{spec}drafts_total{label} {rounds}",
        f"{spec}draft_tokens_total{label} {rounds * 2}",
        f"{spec}accepted_tokens_total{label} {accepted}",
        f"vllm:generation_tokens_total{label} {rounds + accepted}",
        f"vllm:num_requests_running{label} 3",
    ]
    lines += [f'{spec}accepted_tokens_per_pos_total{{position="{k}"}} {v}' for k, v in enumerate(positions)]
    return "\n".join(lines) + "\n"


def pages(*looks, **more):
    return {"/metrics": list(looks), "/version": '{"version": "0.32.0"}', "/v1/models": MODELS} | more


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(server, "BETWEEN", 0.05)
    monkeypatch.setattr(server, "SECONDS", 0.5)


def look(found):
    with serving(found) as (url, asked):
        return server.look(url, probe=False), asked


def test_what_ran_between_two_looks_is_what_counts():
    found, _ = look(pages(vllm(1000, 500, positions=(400, 100)), vllm(1100, 700, positions=(480, 220))))
    counters = found.part["counters"]
    assert (counters["rounds"], counters["accepted"]) == (100, 200)
    assert counters["accepted_per_position"] == [80, 120]
    assert found.part["engine"] == {"name": "vllm", "version": "0.32.0"}
    assert found.part["target"] == {"name": "/models/t"}
    assert found.part["traffic"] == {"concurrency": 3}
    assert not found.warnings


def test_an_idle_server_is_judged_by_its_life_and_that_is_told():
    found, _ = look(pages(vllm(1000, 500)))
    assert found.part["counters"]["rounds"] == 1000
    assert "since the server's start" in found.warnings[0]


def test_counters_that_fall_are_told_and_the_newer_ones_count():
    found, _ = look(pages(vllm(1000, 500), vllm(40, 30)))
    assert found.part["counters"]["rounds"] == 40
    assert "restarted" in found.warnings[0]


def test_a_server_without_speculation_is_told():
    found, _ = look(pages("vllm:generation_tokens_total 40\n"))
    assert "no round of speculation" in found.warnings[0]
    assert not found.part["counters"]


def test_nothing_but_reading_is_done_without_a_probe():
    _, asked = look(pages(vllm(1000, 500)))
    assert set(asked) == {"/metrics", "/version", "/v1/models", "/server_info?config_format=json"}


def test_metrics_that_hang_leave_who_it_is():
    found, _ = look(pages() | {"/metrics": 1.0})
    assert found.part["engine"]["name"] == "vllm"
    assert "no answer within" in found.warnings[0]


def test_metrics_that_break_off_are_read_as_far_as_they_go():
    text = vllm(1000, 500, positions=(400, 100))
    found, _ = look(pages(text[: text.index('position="1"')]))
    assert found.part["counters"]["accepted_per_position"] == [400]
    assert any("could not be read" in warning for warning in found.warnings)


def test_sglang_is_known_by_its_server_info_where_metrics_are_off():
    info = {
        "version": "0.5.23", "model_path": "Q/T", "speculative_algorithm": "DFLASH",
        "speculative_draft_model_path": "z/D", "speculative_num_draft_tokens": 16,
        "internal_states": [{"avg_spec_accept_length": 2.5}],
    }  # fmt: skip
    found, _ = look({"/server_info": json.dumps(info), "/v1/models": MODELS})
    assert found.part["engine"]["version"] == "0.5.23"
    assert found.part["counters"] == {"mean_acceptance_length": 2.5}
    assert found.part["speculation"]["num_speculative_tokens"] == 15
    assert "--enable-metrics" in found.warnings[0]


def test_llama_cpp_is_known_by_its_props():
    props = {"build_info": "b11434-abc", "model_path": "/models/t.gguf", "total_slots": 4}
    found, _ = look({"/props": json.dumps(props), "/v1/models": MODELS})
    assert found.part["engine"] == {"name": "llama.cpp", "version": "b11434-abc", "settings": {"total_slots": 4}}
    assert found.part["target"] == {"name": "/models/t.gguf"}


def test_something_else_that_answers_is_refused():
    with (
        serving({"/v1/models": "{}", "/metrics": "up 1\n"}) as (url, _),
        pytest.raises(UsageError, match="no known engine"),
    ):
        server.look(url, probe=False)


@pytest.mark.parametrize("answer", [b"\xff\xfe\x00", "[" * 100_000, "null", '{"data": 7}', "", '"vllm"'])
def test_odd_answers_are_no_crash(answer):
    every = dict.fromkeys(("/metrics", "/version", "/v1/models", "/props", "/slots", "/server_info"), answer)
    with serving(every) as (url, _), suppress(UsageError):
        assert server.look(url, probe=False).part["engine"]


def test_a_server_that_is_not_there_is_an_error_alone_and_a_warning_beside_others(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("SpecDecoding metrics: Mean acceptance length: 2.00, Accepted: 10 tokens, Drafted: 30 tokens\n")
    with pytest.raises(UsageError, match="Cannot reach"):
        gather(url="http://127.0.0.1:1")
    found = gather(url="http://127.0.0.1:1", logs=[log])
    assert found.evidence.counters.accepted == 10
    assert any("Cannot reach" in warning for warning in found.warnings)


def test_a_probe_asks_for_texts_and_a_refusal_is_told():
    found = pages(vllm(0, 0), vllm(100, 50), **{"/v1/completions": 400})
    with serving(found) as (url, asked):
        looked = server.look(url, probe=True)
    assert "/v1/completions" in asked
    assert "broken off" in looked.warnings[0]
    assert looked.part["traffic"]["temperature"] == 0
