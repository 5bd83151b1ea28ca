"""Rounds timed at tiny shapes on the CPU: the command, its result, its refusals."""

import pytest
from command_line import run_cli
from pace.shapes_file import write

from outrider.pace.result import PaceResult

METHODS = "plain,mtp:2,dflash:7,ddtree:9"


@pytest.fixture
def step(capsys):
    return lambda *words: run_cli(capsys, "bench", "step", "--device", "cpu", "--rounds", "3", *words)


def test_measures_each_method_at_each_context_and_batch(step, tmp_path):
    out = tmp_path / "pace.json"
    done = step(
        "--shapes", write(tmp_path), "--method", METHODS, "--context", "9,20", "--batch", "2",
        "--lengths", "2.5", "--out", str(out), "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = PaceResult.model_validate_json(done.out)
    assert found == PaceResult.model_validate_json(out.read_text(encoding="utf-8"))
    assert [(one.method, one.context, one.batch) for one in found.rounds] == [
        (method, context, 2) for context in (9, 20) for method in METHODS.split(",")
    ]
    for one in found.rounds:
        assert 0 < one.fastest <= one.milliseconds <= one.slowest
        assert one.floor_milliseconds == pytest.approx(
            sum(one.bytes.values()) / found.copy_terabytes_per_second / 1e9, rel=1e-6
        )
        assert 1 <= one.tokens_a_round <= one.nodes
        speeds = {} if one.method == "plain" else {"2.5": 2 * 2.5 / one.milliseconds * 1e3}
        assert one.tokens_per_second == pytest.approx(speeds)


def test_prints_a_table_and_a_profile(step, tmp_path):
    done = step("--shapes", write(tmp_path), "--method", "plain", "--profile")
    assert done.code == 0, done.err
    for word in ("ms a round", "floor ms", "float32", "kernels of a round", "aten::", "random weights"):
        assert word in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "eagle"), "expected plain, mtp:K"),
        (("--context", "0"), "--context '0': expected whole numbers"),
        (("--lengths", "x"), "expected acceptance lengths"),
        (("--load", "real"), "random weights"),
        (("--dtype", "float64"), "expected one of"),
        (("--dtype", "float8"), "needs a GPU"),
        (("--method", "dflash:8"), "at most 7 guesses"),
    ],
)
def test_refuses_in_one_line(step, tmp_path, words, message):
    assert message in step("--shapes", write(tmp_path), *words).check_one_line_error()


def test_shapes_without_a_drafter(step, tmp_path):
    done = step("--shapes", write(tmp_path, drafter=None), "--method", "ddtree:4")
    assert "no DFlash drafter" in done.check_one_line_error()
