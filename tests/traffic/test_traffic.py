"""Benchmarks of servers: real processes that mimic an engine, arms interleaved, what breaks and what is kept."""

import json
from collections import Counter

import pytest
from command_line import run_cli
from deploy.environment import free_port, write_environment
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import write_tiny_model

from outrider.adapters.start import STARTERS, Deployment, Draft
from outrider.commands.prompts_file import rows_of
from outrider.deploy.health import wait_healthy
from outrider.deploy.process import Process
from outrider.errors import UnknownNameError, UsageError
from outrider.traffic.client import ask_all
from outrider.traffic.compare import doubts, pairs
from outrider.traffic.result import Asked, Cell, TrafficResult
from outrider.traffic.summary import rows
from outrider.traffic.workload import Prompt, Workload, chosen, own_prompts

PROMPTS = [Prompt(f"{kind} {number}", kind) for kind in ("code", "chat") for number in range(6)]


@pytest.fixture
def engine_python(tmp_path):
    return write_environment(tmp_path / "environment")


@pytest.fixture
def target(tmp_path):
    return write_tiny_model(tmp_path / "target")


def workload(**more):
    return Workload(**({"prompts": tuple(PROMPTS), "max_tokens": 20} | more))


def bench(capsys, target, python, out, *words):
    common = ("--engine", "vllm", "--python", python, "--out", out, "--max-tokens", 30, "--each", 1, "--warmup", 1)
    seen = run_cli(capsys, "bench", "run", target, *common, *words)
    return seen, TrafficResult.load(out) if out.exists() else None


def test_there_are_twenty_prompts_of_our_own_of_each_of_eight_kinds():
    own = rows_of(own_prompts(), "own")
    assert list(Counter(row.category for row in own).values()) == [20] * 8
    assert len({row.prompt for row in own}) == 160


@given(st.integers(0, 99), st.integers(1, 6))
def test_prompts_are_chosen_by_kind_in_an_order_that_the_seed_gives(seed, each):
    found = chosen(PROMPTS, (), each, seed)
    assert Counter(one.category for one in found) == {"code": each, "chat": each}
    assert found == chosen(PROMPTS, (), each, seed)
    assert {one.category for one in chosen(PROMPTS, ("code",), None, seed)} == {"code"}


def test_a_kind_that_is_not_there_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'code'"):
        chosen(PROMPTS, ("cod",), 1, 0)
    with pytest.raises(UsageError, match="no prompts"):
        chosen([], (), 1, 0)


@given(st.floats(0.1, 100), st.integers(0, 9))
def test_arrivals_come_at_random_and_the_same_for_every_arm(rate, seed):
    one = workload(prompts=tuple(PROMPTS * 40), rate=rate, seed=seed)
    times = one.arrivals()
    assert times == sorted(times) == one.arrivals()
    assert times[-1] / len(times) == pytest.approx(1 / rate, rel=0.3)


@pytest.fixture
def server(engine_python, tmp_path, monkeypatch):
    def start(*modes, drafted=3):
        monkeypatch.setenv("SIMULATED", ",".join(modes))
        draft = Draft("ngram", None, drafted) if drafted else None
        deployment = Deployment(target="T", draft=draft, port=free_port())
        process = Process(STARTERS["vllm"].command(deployment, python=engine_python), tmp_path / "log", grace=2.0)
        running.append(process)
        url = f"http://127.0.0.1:{deployment.port}"
        wait_healthy(process, f"{url}/health", title="vLLM", patience=20)
        return url

    running = []
    yield start
    for process in running:
        process.stop()


def test_a_closed_loop_keeps_so_many_requests_in_flight(server):
    url = server()
    told = ask_all(url, "m", workload(), 4)
    assert ([one.prompt for one in told.asked], told.failures) == (list(range(12)), [])
    assert all(one.tokens == 20 and 0 < one.ttft_s <= one.seconds for one in told.asked)
    events = sorted([(one.start, 1) for one in told.asked] + [(one.start + one.seconds, -1) for one in told.asked])
    flying, most = 0, 0
    for _, step in events:
        flying += step
        most = max(most, flying)
    assert most == 4


def test_an_open_loop_sends_requests_when_they_arrive(server):
    one = workload(rate=40.0)
    told = ask_all(server(), "m", one, 1)
    for asked, arrival in zip(told.asked, one.arrivals(), strict=True):
        assert asked.start == pytest.approx(arrival, abs=0.15)


def test_answers_that_break_off_are_failures_with_a_reason(server):
    told = ask_all(server("closes"), "m", workload(), 1)
    assert len(told.asked) == 3
    assert len(told.failures) == 9
    assert told.failures[0].startswith("prompt 3: ")


def test_whole_texts_without_chat_are_asked_too(server):
    told = ask_all(server(), "m", workload(chat=False), 2)
    assert len(told.asked) == 12


def test_arms_are_interleaved_against_plain_decoding_and_written(capsys, target, engine_python, tmp_path):
    out, picture = tmp_path / "b.json", tmp_path / "b.svg"
    words = ("--arm", "ngram:3", "--concurrency", "1,3", "--repeats", 2, "--plot", picture)
    seen, result = bench(capsys, target, engine_python, out, *words)
    assert seen.code == 0, seen.err
    assert [arm.name for arm in result.arms] == ["vllm plain", "vllm ngram:3"]
    order = [(cell.repeat, cell.arm) for cell in result.cells if cell.concurrency == 1]
    # Each repeat begins with another arm.
    assert order == [(0, "vllm plain"), (0, "vllm ngram:3"), (1, "vllm ngram:3"), (1, "vllm plain")]
    assert len(result.cells) == 2 * 2 * 2
    plain, short = (next(r for r in result.rows if r.arm == arm.name) for arm in result.arms)
    assert (plain.speedup, plain.acceptance_length) == (None, None)
    assert short.speedup.low > 1.2  # a round costs 1.25 plain ones and gives 2.5 tokens
    assert 2.0 < short.acceptance_length < 3.0
    assert len(short.position_rates) == 3
    assert short.same_texts == (16, 16)
    assert short.break_even == pytest.approx(short.acceptance_length / short.speedup.value)
    assert all("--no-enable-prefix-caching" in arm.command for arm in result.arms)
    assert picture.read_text().count("<svg") == 1
    assert "u_k" in seen.out


def test_acceptance_is_that_of_the_rounds_that_were_run(capsys, target, engine_python, tmp_path):
    _, result = bench(capsys, target, engine_python, tmp_path / "b.json", "--arm", "ngram:3", "--repeats", 1)
    cell = next(one for one in result.cells if one.arm == "vllm ngram:3")
    row = next(one for one in result.rows if one.arm == "vllm ngram:3")
    assert row.acceptance_length == 1 + cell.accepted / cell.rounds
    tokens = sum(one.tokens for one in cell.asked)
    assert tokens <= cell.rounds + cell.accepted <= tokens + 3 * len(cell.asked)  # the last round may go past the end
    assert cell.per_position[0] >= cell.per_position[-1]


@pytest.mark.parametrize("broken", [("dies-later", "illegal memory access"), ("closes", "no request was answered")])
def test_a_server_that_breaks_keeps_what_was_measured(broken, capsys, target, engine_python, monkeypatch):
    mode, said = broken
    monkeypatch.setenv("SIMULATED", mode)
    out = target.parent / "b.json"
    seen, result = bench(capsys, target, engine_python, out, "--concurrency", "1,1", "--repeats", 1)
    assert seen.code == 1
    assert said in result.failed["vllm plain"]
    assert len(result.cells[0].asked) == 2  # one warmed up, and the third broke it
    assert "broke off" in seen.out


def test_a_server_that_never_comes_up_is_told(capsys, target, engine_python, tmp_path, monkeypatch):
    monkeypatch.setenv("SIMULATED", "dies")
    seen, result = bench(capsys, target, engine_python, tmp_path / "b.json", "--repeats", 1)
    assert (seen.code, result.rows) == (1, [])
    assert "head_size 576" in result.failed["vllm plain"]


def test_texts_that_repeat_themselves_are_warned_of(capsys, target, engine_python, tmp_path, monkeypatch):
    monkeypatch.setenv("SIMULATED", "repeats")
    seen, _ = bench(capsys, target, engine_python, tmp_path / "b.json", "--repeats", 1)
    assert "acceptance is flattered" in seen.out


def test_a_server_without_metrics_gives_speeds_and_no_acceptance(capsys, target, engine_python, tmp_path, monkeypatch):
    monkeypatch.setenv("SIMULATED", "no-metrics")
    seen, result = bench(capsys, target, engine_python, tmp_path / "b.json", "--arm", "ngram:3", "--repeats", 1)
    assert seen.code == 0
    assert {row.acceptance_length for row in result.rows} == {None}
    assert result.rows[1].speedup.value > 1


def test_a_server_that_runs_already_is_measured_without_a_base(server, capsys, tmp_path):
    out = tmp_path / "b.json"
    seen = run_cli(capsys, "bench", "url", server(), "--each", 1, "--repeats", 1, "--max-tokens", 20, "--out", out)
    assert seen.code == 0, seen.err
    (row,) = TrafficResult.load(out).rows
    assert row.speedup is None
    assert row.acceptance_length > 1.5


def test_results_are_compared_and_what_else_differs_is_said(capsys, target, engine_python, tmp_path):
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    _, before = bench(capsys, target, engine_python, one, "--repeats", 1)
    _, after = bench(capsys, target, engine_python, other, "--repeats", 1, "--seed", 3, "--temperature", 0.5)
    (pair,) = pairs(before, after)
    assert pair.throughput > 0
    assert any("temperature 0.0 and 0.5" in line for line in doubts(before, after))
    assert doubts(before, before) == []
    seen = run_cli(capsys, "bench", "compare", one, other)
    assert "careful: temperature" in seen.out


BAD = [
    (["run", "{target}"], "Which engine?"),
    (["run", "{target}", "--engine", "outrider"], "outrider compare measures it"),
    (["run", "{target}", "--engine", "vllm", "--python", "{python}", "--arm", "dflash"], "needs a draft model"),
    (["run", "{target}", "--engine", "vllm", "--python", "{python}", "--arm", "ngram:x"], "METHOD:K"),
    (["run", "{target}", "--engine", "vllm", "--python", "{python}", "--concurrency", "1,x"], "whole numbers"),
    (["run", "{target}", "--engine", "vllm", "--python", "{python}", "--kind", "cod"], "Did you mean 'code'"),
    (["compare", "nowhere.json", "nowhere.json"], "Cannot read nowhere.json"),
    (["compare", "{text}", "{text}"], "is no result of outrider bench run"),
]


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_measured_is_one_line(bad, capsys, target, engine_python, tmp_path):
    words, said = bad
    text = tmp_path / "text.json"
    text.write_text(json.dumps({"a": 1}))
    filled = [word.format(target=target, python=engine_python, text=text) for word in words]
    assert said in run_cli(capsys, "bench", *filled).check_one_line_error()


def cell(arm, repeat, seconds, **more):
    asked = [
        Asked(
            prompt=i, start=0, seconds=s, ttft_s=0.1, tokens=11, prompt_tokens=3, largest_gap_s=0.1, words=8,
            distinct=4, digest=f"{arm}{i}",
        )
        for i, s in enumerate(seconds)
    ]  # fmt: skip
    return Cell(arm=arm, concurrency=1, repeat=repeat, seconds=sum(seconds), asked=asked, **more)


def test_rows_follow_from_cells_by_pooling():
    plain = [cell("p", 0, [2.0, 4.0]), cell("p", 1, [2.0, 4.0])]
    drafted = [
        cell("d", 0, [1.0, 2.0], rounds=10, drafted=30, accepted=10, per_position=[6, 4]),
        cell("d", 1, [1.0, 3.0], rounds=30, drafted=90, accepted=10, per_position=[8, 2]),
    ]
    base, row = rows([*plain, *drafted], "p", greedy=True)
    assert base.tokens_per_second == (44 / 12, 22 / 6, 22 / 6)
    assert row.tokens_per_second == (44 / 7, 22 / 4, 22 / 3)
    assert row.acceptance_length == 1 + 20 / 40
    assert row.acceptance_rate == 20 / 120
    assert row.position_rates == [14 / 40, 6 / 40]
    assert row.speedup.value == pytest.approx((22 / 3) / (22 / 6))  # repeats of median time
    assert row.tpot_s == pytest.approx((0.9 + 0.9 + 1.9 + 2.9) / 4 / 10, rel=0.3)
    assert row.same_texts == (0, 4)
    assert row.diversity == 0.5
