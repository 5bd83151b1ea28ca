"""Looks at counters, windows, alarms, the time series, the exporter: over invented counts and a real process."""

import json
import re
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from command_line import run_cli
from deploy.environment import free_port
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from outrider.adapters import Counts
from outrider.commands.live import curve_text, view_text
from outrider.deploy.alarm import ENOUGH_ROUNDS, changed
from outrider.deploy.exporter import exporting
from outrider.deploy.health import wait_healthy
from outrider.deploy.session import Session
from outrider.deploy.watcher import Tick, Watcher, added
from outrider.doctor.evidence import Evidence
from outrider.doctor.web import get_json
from outrider.errors import UsageError

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "outrider.json"
HEALTHY = (0.8, 0.6, 0.45, 0.35)


def counts(rates, rounds=1000, **more):
    hits = tuple(round(rate * rounds) for rate in rates)
    return Counts(rounds=rounds, drafted=rounds * len(rates), accepted=sum(hits), per_position=hits, **more)


def ask(url, texts, max_tokens=60):
    for text in texts:
        get_json(f"{url}/v1/completions", seconds=20, body={"prompt": text, "max_tokens": max_tokens})


class Invented:
    """A watcher whose looks are given."""

    adapter = None

    def __init__(self, ticks):
        self.ticks = iter(ticks)

    def look(self):
        return next(self.ticks)


def ticks(*rates, every=30.0, rounds=400):
    yield Tick(at=0.0, counts=Counts())
    for number, one in enumerate(rates, start=1):
        yield Tick(at=number * every, seconds=every, counts=counts(one, rounds, generated=rounds * (1 + sum(one))))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15), st.integers(1, 5000))
def test_a_curve_that_stays_as_it_is_raises_no_alarm(rates, rounds):
    falling = sorted(rates, reverse=True)
    assert changed(counts(falling), counts(falling, rounds)) is None


CHANGES = [
    ((0.02, 0.0, 0.0, 0.0), "next to nothing is accepted any more (acceptance length 3.20 to 1.02)"),
    ((0.4, 0.3, 0.225, 0.175), "all positions fell alike (acceptance length 3.20 to 2.10)"),
    ((0.79, 0.2, 0.05, 0.0), "the first position holds, from position 2 on it fell (acceptance length 3.20 to 2.04)"),
    ((0.5, 0.2, 0.1, 0.0), "the curve fell from position 1 on (acceptance length 3.20 to 1.80)"),
    ((0.95, 0.9, 0.85, 0.8), "the curve rose from position 1 on (acceptance length 3.20 to 4.50)"),
]


@pytest.mark.parametrize(("rates", "said"), CHANGES)
def test_a_curve_that_changed_is_told_in_words(rates, said):
    assert changed(counts(HEALTHY), counts(rates)).said == said


def test_few_rounds_and_small_changes_raise_no_alarm():
    assert changed(counts(HEALTHY), counts((0.1, 0, 0, 0), ENOUGH_ROUNDS - 1)) is None
    assert changed(counts(HEALTHY, 10**6), counts((0.78, 0.58, 0.43, 0.33), 10**6)) is None


def test_engines_that_count_no_positions_are_compared_by_length():
    before, after = Counts(rounds=1000, accepted=2000), Counts(rounds=1000, accepted=300)
    assert "length 3.00 to 1.30" in changed(before, after).said
    assert changed(Counts(rounds=1000), after) is None


def test_a_session_alarms_once_and_says_what_the_doctor_makes_of_it():
    rates = [HEALTHY] * 4 + [(0.02, 0.0, 0.0, 0.0)] * 4 + [HEALTHY] * 4
    session = Session(Invented(ticks(*rates)), Evidence(schema=1))
    views = [session.step() for _ in range(1 + len(rates))]
    began = [number for number, view in enumerate(views) if view.began]
    assert began == [5]  # the first look with the fallen curve in its window
    assert views[5].opinion
    assert views[-1].alarm is None
    assert "length" in view_text("vLLM", views[5]).plain


def test_a_restart_forgets_what_was_counted():
    invented = [*ticks(*[HEALTHY] * 4), Tick(at=200.0, counts=Counts(), restarted=True)]
    session = Session(Invented(invented), Evidence(schema=1))
    last = [session.step() for _ in invented][-1]
    assert (last.window, last.alarm, last.opinion) == (None, None, "")
    assert "the server was restarted" in view_text("vLLM", last).plain


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5))
def test_several_looks_are_added_as_counts(pairs):
    looks = [Tick(at=1.0, seconds=2.0, counts=Counts(rounds=r, accepted=a, per_position=(a,))) for r, a in pairs]
    total = added([Tick(at=0.0, counts=Counts(rounds=99)), Tick(at=0.5, problem="gone"), *looks])
    assert total.seconds == 2.0 * len(pairs)
    assert total.counts.rounds == sum(r for r, _ in pairs)
    assert total.counts.per_position == (sum(a for _, a in pairs),)


def test_bars_follow_the_rates():
    assert curve_text((1.0, 0.5, 0.0)) == "█▄ "


def test_a_server_is_watched_as_it_counts(simulate):
    process, url = simulate()
    wait_healthy(process, f"{url}/health", title="vLLM", patience=20)
    watcher = Watcher(url)
    assert watcher.look().seconds is None
    ask(url, ["one", "two"])
    tick = watcher.look()
    reading = tick.reading()
    assert watcher.adapter.name == "vllm"
    assert tick.counts.generated >= 120
    assert 1.5 < reading.tau < 3.0
    assert reading.tau == pytest.approx(1 + sum(reading.positions))
    process.stop()
    assert "Cannot reach" in watcher.look().problem


def test_a_server_without_metrics_is_told_how_to_turn_them_on(simulate):
    process, url = simulate("no-metrics")
    wait_healthy(process, f"{url}/health", title="vLLM", patience=20)
    assert "SGLang: --enable-metrics, llama.cpp: --metrics" in Watcher(url).look().problem


def test_the_command_writes_a_series_and_ends_with_the_alarm(simulate, tmp_path, capsys):
    process, url = simulate(turn=400)
    wait_healthy(process, f"{url}/health", title="vLLM", patience=20)
    out = tmp_path / "series.jsonl"

    def traffic():
        for number in range(60):
            time.sleep(0.01)
            if process.ended() is None:
                ask(url, [f"text {number}"])

    thread = threading.Thread(target=traffic)
    thread.start()
    seen = run_cli(capsys, "watch", url, "--every", 0.2, "--for", 6, "--window", 1, "--out", out)
    thread.join()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert (seen.code, seen.out) == (1, "")
    assert sum("alarm" in row for row in rows) == 1
    assert "alarm: all positions fell" in seen.err or "fell from position 1" in seen.err
    assert {"acceptance_length", "position_rates", "tokens_per_second"} <= set(max(rows, key=len))


def test_nothing_there_is_one_line(capsys):
    seen = run_cli(capsys, "watch", f"http://127.0.0.1:{free_port()}", "--for", 1)
    assert "Cannot reach" in seen.check_one_line_error()


def exported(port):
    with urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        text = response.read().decode()
    return {sample.name: sample for family in text_string_to_metric_families(text) for sample in family.samples}


def test_the_exporter_gives_the_definitions_of_the_glossary():
    port = free_port()
    with exporting(port) as one:
        for tick in ticks(HEALTHY, HEALTHY):
            one.update(tick, tick if tick.seconds else None, engine="vllm", alarm=False)
        found = exported(port)
    assert found["outrider_spec_rounds_total"].value == 800
    assert found["outrider_spec_acceptance_length"].value == pytest.approx(3.2)
    assert found["outrider_spec_accepted_at_position_total"].labels == {"engine": "vllm", "model": "", "position": "4"}
    assert found["outrider_spec_up"].value == 1


def test_a_port_that_is_taken_is_told():
    port = free_port()
    with exporting(port), pytest.raises(UsageError, match="cannot listen there"), exporting(port):
        pass


def test_the_dashboard_shows_what_is_exported_and_nothing_else():
    port = free_port()
    with exporting(port) as one:
        window = Tick(at=1, seconds=1, counts=counts(HEALTHY, generated=9, running=1))
        one.update(window, window, engine="e", alarm=True)
        names = set(exported(port))
    board = json.loads(DASHBOARD.read_text())
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    used = set(re.findall(r"outrider_spec_\w+", asked))
    assert used <= names
    assert {"outrider_spec_acceptance_length", "outrider_spec_position_rate", "outrider_spec_alarm"} <= used
