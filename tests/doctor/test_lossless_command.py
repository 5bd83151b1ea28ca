"""``outrider doctor --lossless`` against servers on loopback."""

import json
from itertools import count

import pytest
from command_line import run_cli
from doctor.lossless_stub import serving


@pytest.fixture(autouse=True)
def quick_and_always_alike(monkeypatch):
    monkeypatch.setattr("outrider.doctor.lossless.law.SAMPLES", 0)
    marks = count()
    monkeypatch.setattr("outrider.doctor.lossless.run.token_hex", lambda _size: f"mark{next(marks)}")


def test_an_honest_server_exits_with_0(capsys):
    with serving() as url, serving() as reference:
        seen = run_cli(capsys, "doctor", "--lossless", url, "--reference", reference)
    assert seen.code == 0
    assert seen.out.startswith("lossless: ")
    assert "8 at once" in seen.out


def test_a_corrupt_server_exits_with_1_and_shows_the_first_place(capsys):
    with serving("cache") as url:
        seen = run_cli(capsys, "doctor", "--lossless", url)
    assert seen.code == 1
    assert "differs: again, prompt " in seen.out


def test_what_cannot_be_decided_exits_with_2(capsys):
    with serving() as url:
        seen = run_cli(capsys, "doctor", "--lossless", url, "--json")
    assert seen.code == 2
    assert json.loads(seen.out)["outcome"] == "not_decidable"


def test_a_server_that_is_not_there_is_one_line(capsys):
    error = run_cli(capsys, "doctor", "--lossless", "http://127.0.0.1:9").check_one_line_error()
    assert "Cannot reach" in error
