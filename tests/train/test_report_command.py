"""``outrider train report`` as a user runs it."""

import json
import re

import pytest
from command_line import run_cli
from train.synthetic import run_lines, write_lines


@pytest.fixture
def report(capsys):
    return lambda *arguments: run_cli(capsys, "train", "report", *arguments)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("good") / "metrics.jsonl", run_lines()).parent


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    lines = run_lines(steps=2000)
    for line in lines:
        if line.get("kind") == "step":
            line["starved"] = 0.5
    return write_lines(tmp_path_factory.mktemp("broken") / "metrics.jsonl", lines).parent


def test_the_verdict_comes_first_and_the_curves_after_it(report, good):
    seen = report(good)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.startswith("Still improving: another 80 M tokens should add 0.")
    assert "tau [95 %]" in seen.out
    assert "acceptance length" in seen.out
    assert seen.out.count("●") > 20
    assert max(map(len, seen.out.split("tau [95 %]")[1].splitlines())) <= 80


def test_a_broken_run_has_exit_code_1(report, broken):
    seen = report(broken)
    assert seen.code == 1
    assert seen.out.startswith("Broken: F11, anchors on a grid, or too few.")


def test_json_holds_verdict_checks_and_curves(report, good):
    seen = report(good, "--json")
    found = json.loads(seen.out)
    assert found["status"] == "improving"
    assert found["expected"]["doubling"]["low"] > 0
    assert {check["code"] for check in found["checks"]} >= {"F1", "F2", "F3", "F8", "F11"}
    assert {curve["of"] for curve in found["curves"]} == {
        "loss", "slot accuracy", "acceptance length", "position rates",
    }  # fmt: skip
    assert found["steps"] == 4000


def test_curves_are_drawn_the_same_each_time(report, good, tmp_path):
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    assert report(good, "--plot", first).code == report(good, "--plot", second).code == 0
    assert first.read_bytes() == second.read_bytes()
    assert first.read_text().count('id="axes_') == 4


def test_the_page_holds_everything_and_runs_nothing(report, good, tmp_path):
    page = tmp_path / "report.html"
    assert report(good, "--html", page).code == 0
    text = page.read_text()
    assert "Still improving" in text
    assert "<svg" in text
    assert "labels shifted by a place" in text
    assert "<script" not in text
    assert not re.search(r"(?:src|href)=\"http", text)


def test_what_a_log_says_is_escaped_on_the_page(report, tmp_path):
    log = tmp_path / "chart.csv"
    log.write_text("step,loss,<script>x</script>\n1,3.0,1\n2,2.9,1\n")
    assert report(log, "--html", tmp_path / "page.html").code == 0
    assert "&lt;script&gt;" in (tmp_path / "page.html").read_text()
    assert "<script>" not in (tmp_path / "page.html").read_text()


def test_somebody_elses_log_says_what_was_understood(report, tmp_path):
    log = tmp_path / "train.log"
    log.write_text(
        "".join(f"epoch=0 step={step} loss={2 + 40 / step**0.5:.4f} acc=0.1 gpu=7\n" for step in range(50, 3000, 50))
    )
    seen = report(log)
    assert seen.code == 0
    assert "Served acceptance: not examined" in seen.out
    assert "train.log: 59 lines; epoch from epoch; training loss from loss; training accuracy from acc." in seen.out
    assert "train.log: not understood, passed over: gpu." in seen.out


@pytest.mark.parametrize("name", ["gone", "empty.log", "folder"])
def test_bad_input_gives_one_line(report, tmp_path, name):
    (tmp_path / "empty.log").write_text("")
    (tmp_path / "folder").mkdir()
    report(tmp_path / name).check_one_line_error()


def test_a_place_that_cannot_be_written_gives_one_line(report, good, tmp_path):
    assert "name another place" in report(good, "--plot", tmp_path / "no" / "a.svg").check_one_line_error()
    assert "name another place" in report(good, "--html", tmp_path / "no" / "a.html").check_one_line_error()


def test_without_matplotlib_a_plot_says_what_to_install_and_a_page_does_without(report, good, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert "pip install 'outrider[plot]'" in report(good, "--plot", tmp_path / "a.svg").check_one_line_error()
    assert report(good, "--html", tmp_path / "a.html").code == 0
    assert "install matplotlib" in (tmp_path / "a.html").read_text()
