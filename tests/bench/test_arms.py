"""The table of benchmark arms, and the prompts they get."""

import sys
from pathlib import Path

import pytest
from benchmarks import arms as module
from benchmarks import workload
from benchmarks.arms import KINDS, Kind, choose

from outrider.checkpoint import Source
from outrider.errors import UnknownNameError, UsageError

GGUF = Source(path=Path("m.gguf"), kind="gguf", origin="a file")


def test_every_arm_has_its_script():
    folder = Path(module.__file__).parent
    assert {kind.script for kind in KINDS.values()} == {p.name for p in folder.glob("arm_*.py")}


def test_an_arm_gets_the_model_the_threads_and_its_options(monkeypatch, tmp_path):
    monkeypatch.setitem(KINDS, "x", Kind("arm_outrider.py", ("--drafter", "ngram"), needs="json"))
    [arm], skipped = choose(["x"], GGUF, 2, tmp_path)
    program, script, *rest = arm.command
    assert (arm.name, program, Path(script).name) == ("x", sys.executable, "arm_outrider.py")
    assert rest == ["--drafter", "ngram", "--model", "m.gguf", "--threads", "2"]
    assert skipped == {}


def test_a_peer_that_is_not_installed_is_skipped_and_said(monkeypatch, tmp_path):
    monkeypatch.setitem(KINDS, "x", Kind("arm_outrider.py", needs="no_such_package"))
    assert choose(["x"], GGUF, 2, tmp_path) == ([], {"x": "no_such_package is not installed"})


def test_an_arm_that_needs_gguf_is_skipped_for_a_folder(monkeypatch, tmp_path):
    monkeypatch.setitem(KINDS, "x", Kind("arm_llamacpp.py", needs="json", gguf="float16"))
    folder = Source(path=Path("m"), kind="folder", origin="a folder")
    assert choose(["x"], folder, 2, tmp_path) == ([], {"x": "the model is no GGUF file"})


def test_an_unknown_arm_is_told_the_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'llamacpp-f16'"):
        choose(["llamacpp-f61"], GGUF, 2, tmp_path)


def test_the_shipped_prompts_are_rows_with_a_category():
    rows = workload._rows(Path(workload.__file__).parent / "prompts.jsonl")
    assert {row["category"] for row in rows} >= {"summarization", "rag", "qa"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "one JSON object a line"), ('{"category": "x"}', "Row 1"), ("[]", "Row 1")],
    ids=["no JSON", "no prompt", "no object"],
)
def test_a_broken_prompts_file_is_one_line(tmp_path, text, message):
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        workload._rows(path)
    assert "\n" not in str(caught.value)
