"""The command line of the doctor: exit codes, outputs, what is run when. Evidence comes from a stand-in reader."""

import json
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import run_cli

from outrider.commands.doctor import Request, exit_code, runs_the_pair
from outrider.commands.doctor_options import Known, Written
from outrider.commands.options import Loading
from outrider.doctor.evidence import Evidence
from outrider.doctor.rule import RULES
from outrider.doctor.verdict import Finding, NotExamined, Verdict

SICK = {
    "schema": 1,
    "method": "dflash",
    "engine": {"name": "vllm", "version": "0.20.1", "command": "vllm serve /home/somebody/T"},
    "drafter": {"training": "still under training"},
    "counters": {"accepted_per_position": [0.2, 0.03, 0.0], "rounds": 5000},
    "expected": {"mean_acceptance_length": 6.4},
}
SOUND = {
    "schema": 1,
    "method": "mtp",
    "speculation": {"num_speculative_tokens": 3},
    "counters": {
        "accepted_per_position": [0.9, 0.8, 0.7], "rounds": 5000, "tokens_per_second": 120.0,
        "baseline_tokens_per_second": 50.0,
    },
    "expected": {"mean_acceptance_length": 3.4},
}  # fmt: skip


@pytest.fixture
def run(capsys):
    return lambda *arguments: run_cli(capsys, *arguments)


@pytest.fixture
def intake(monkeypatch):
    """Stand in for what reads evidence; what it was asked is kept."""
    seen = SimpleNamespace(asked=None, evidence=SICK, warnings=())

    def gather(**asked):
        seen.asked = asked
        return SimpleNamespace(evidence=Evidence.model_validate(seen.evidence), warnings=seen.warnings, sources=())

    monkeypatch.setitem(sys.modules, "outrider.doctor.intake", SimpleNamespace(gather=gather))
    return seen


def test_findings_exit_with_1_and_end_with_ways_forward(run, intake):
    seen = run("doctor", "--evidence", "x.yaml")
    assert seen.code == 1, seen
    assert "Ways forward" in seen.out
    assert "1.23, expected 6.40" in seen.out


def test_sound_evidence_exits_with_0(run, intake):
    intake.evidence = SOUND
    assert run("doctor", "--evidence", "x.yaml").code == 0


def test_evidence_that_says_nothing_exits_with_2(run, intake):
    intake.evidence = {"schema": 1}
    assert run("doctor", "--evidence", "x.yaml").code == 2


def test_json_is_the_verdict_and_nothing_else(run, intake):
    seen = run("doctor", "--evidence", "x.yaml", "--json")
    found = json.loads(seen.out)
    assert list(found) == ["schema", "findings", "not_examined", "next", "summary", "options", "notes"]
    assert found["schema"] == 1
    assert Verdict.model_validate(found).options


def test_several_inputs_are_put_together(run, intake, tmp_path):
    (tmp_path / "launch.txt").write_text("vllm serve X")
    arguments = [
        "--log",
        "a.log",
        "--log",
        "b.log",
        "--command",
        "sglang serve",
        "--command",
        f"@{tmp_path}/launch.txt",
    ]
    run("doctor", "http://localhost:1", "--evidence", "e.yaml", *arguments, "--drafter", "D", "--probe")
    assert intake.asked == {
        "file": Path("e.yaml"), "url": "http://localhost:1", "logs": [Path("a.log"), Path("b.log")],
        "commands": ["sglang serve", "vllm serve X"], "drafter": "D", "target": None, "probe": True,
    }  # fmt: skip


def test_reports_are_written_beside_the_terminal(run, intake, tmp_path):
    md, html = tmp_path / "r.md", tmp_path / "r.html"
    run("doctor", "--evidence", "x.yaml", "--markdown", md, "--html", html)
    assert md.read_text().startswith("# Speculative decoding, examined")
    HTMLParser().feed(html.read_text())
    assert "<svg" in html.read_text()


def test_redact_counts_for_every_output(run, intake, tmp_path):
    md, html = tmp_path / "r.md", tmp_path / "r.html"
    arguments = ("doctor", "--evidence", "x.yaml", "--redact", "--markdown", md, "--html", html)
    text, as_json = run(*arguments), run(*arguments, "--json")
    assert "somebody" not in text.out + as_json.out + md.read_text() + html.read_text()
    assert "somebody" in run("doctor", "--evidence", "x.yaml").out


def test_what_the_reader_warns_of_is_told(run, intake):
    intake.warnings = ("Half of the log is missing.",)
    assert "Half of the log is missing." in run("doctor", "--log", "x.log").out


def test_nothing_to_examine_is_one_line(run):
    assert "--evidence" in run("doctor").check_one_line_error()


def test_prompts_need_a_pair(run, intake):
    assert "--target" in run("doctor", "--prompts", "p.jsonl", "--evidence", "x").check_one_line_error()


def test_a_report_that_cannot_be_written_is_one_line(run, intake, tmp_path):
    error = run("doctor", "--evidence", "x", "--html", tmp_path / "gone" / "r.html").check_one_line_error()
    assert "r.html" in error


def request(url=None, **known):
    return Request(url=url, known=Known(**known), written=Written(), loading=Loading())


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        (request(drafter="D", target="T"), True),
        (request(drafter="D"), False),
        (request(target="T"), False),
        (request(drafter="D", target="T", evidence=Path("e")), False),
        (request("http://x", drafter="D", target="T"), False),
        (request(drafter="D", target="T", log=[Path("l")]), False),
        (request(drafter="D", target="T", command=["c"]), False),
        (request(drafter="D", target="T", evidence=Path("e"), prompts=Path("p")), True),
    ],
)
def test_the_pair_is_run_when_it_is_all_that_was_given_or_with_prompts(asked, runs):
    assert runs_the_pair(asked) is runs


def test_the_same_prompts_are_those_of_a_file(run, intake):
    error = run("doctor", "--drafter", "D", "--target", "T", "--same-prompts").check_one_line_error()
    assert "--prompts" in error


def finding(confidence, standing="possible"):
    return Finding(code="OR999", cause="other", standing=standing, confidence=confidence)


def test_findings_count_once_a_fault_is_likelier_than_none():
    assert exit_code(Verdict(summary="x", findings=[finding(0.3), finding(0.3)])) == 1
    assert exit_code(Verdict(summary="x", findings=[finding(0.3), finding(0.1)])) == 0
    assert exit_code(Verdict(summary="x", findings=[finding(0.9, "refuted")])) == 0


def test_rules_that_all_lack_their_input_examined_nothing():
    lacking = [NotExamined(code=rule.code, needs="x") for rule in RULES]
    assert exit_code(Verdict(summary="x", not_examined=lacking)) == 2


def test_the_list_holds_every_rule(run):
    seen = run("doctor", "--list")
    assert seen.code == 0
    assert all(rule.code in seen.out and rule.cause in seen.out for rule in RULES)


def test_an_unknown_code_names_the_nearest(run):
    assert "Did you mean 'OR205'" in run("explain", "OR2O5").check_one_line_error()


@pytest.mark.parametrize("code", [rule.code for rule in RULES])
def test_explain_prints_the_page(run, code):
    seen = run("explain", code.lower())
    assert seen.code == 0
    assert seen.out.startswith("# ")


STARTED = """
import sys
sys.modules["torch"] = None
from types import SimpleNamespace
from outrider.doctor.evidence import Evidence
gather = lambda **_: SimpleNamespace(evidence=Evidence.model_validate({evidence}), warnings=())
sys.modules["outrider.doctor.intake"] = SimpleNamespace(gather=gather)
from outrider import cli
sys.exit(cli.run(["doctor", "--evidence", "x", "--json"]))
"""


def test_a_static_examination_needs_no_torch_and_is_quick():
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", STARTED.format(evidence=SICK)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["findings"]
    assert time.perf_counter() - begun < 4  # two on a machine with nothing else to do


def test_the_readme_shows_what_the_doctor_says_of_the_story(capsys, monkeypatch):
    root = Path(__file__).parents[2]
    shown = (root / "README.md").read_text("utf-8").partition("# shortened\n")[2].partition("\n```")[0]
    monkeypatch.chdir(root)
    said = run_cli(capsys, "doctor", "--evidence", "examples/qwen36-dflash/evidence.yaml").out
    lines = [line.removesuffix("...") for line in shown.splitlines() if line]
    assert len(lines) > 20
    assert [line for line in lines if line not in said] == []
