"""Interleaved runs: order, samples, ratios of arms whose speeds are known."""

import re
import sys
from pathlib import Path

import pytest

from outrider.bench import run as module
from outrider.bench.run import Arm, Prompt, Workload, run
from outrider.errors import OutriderError, UsageError

FAKE = str(Path(__file__).parent / "fake_arm.py")
WORKLOAD = Workload((Prompt((1,), "qa"), Prompt((2, 3), "rag")), max_tokens=4)


def arm(behaviour, step=0.0):
    return Arm(behaviour, (sys.executable, FAKE, behaviour, str(step)))


@pytest.fixture
def asked(monkeypatch):
    """Which worker was asked for which prompt, in order."""
    order = []
    ask = module._ask

    def note(worker, prompt, max_tokens):
        order.append((worker.name, prompt.ids[0]))
        return ask(worker, prompt, max_tokens)

    monkeypatch.setattr(module, "_ask", note)
    return order


def test_arms_are_interleaved_and_the_first_changes(asked):
    run([arm("a"), arm("b")], WORKLOAD, name="n", warmup=1, repeats=2)
    warm, first, second = asked[:2], asked[2:6], asked[6:]
    assert warm == [("a", 1), ("b", 1)]
    assert first == [("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert second == [("b", 1), ("a", 1), ("a", 2), ("b", 2)]


def test_known_speeds_give_the_known_ratio():
    found = run([arm("slow", 0.02), arm("fast", 0.01)], WORKLOAD, name="n", warmup=0, repeats=3)
    slow, fast = found.arms
    assert (slow.ratios["all"].value, slow.ratios["all"].unit) == (1.0, "prompts")
    assert fast.ratios["all"].value == pytest.approx(2, rel=0.15)
    assert fast.ratios["all"].low <= fast.ratios["all"].value <= fast.ratios["all"].high
    assert set(fast.ratios) == {"all", "qa", "rag"}
    assert fast.ratios["qa"].unit == "repeats"
    assert fast.tokens_per_second == pytest.approx(100, rel=0.15)
    assert fast.median_step_seconds == 0.01
    assert fast.acceptance_length == 2.0
    assert [(s.repeat, s.prompt) for s in fast.samples] == [(r, p) for r in range(3) for p in range(2)]


def test_differing_tokens_are_counted_and_placed():
    found = run([arm("good"), arm("differs")], WORKLOAD, name="n", warmup=0, repeats=1)
    assert [a.same_tokens for a in found.arms] == [2, 0]
    assert found.arms[1].first_differences == [3, 3]


def test_the_result_says_what_ran_and_what_did_not():
    lines = []
    found = run(
        [arm("good")],
        WORKLOAD,
        name="n",
        warmup=0,
        repeats=1,
        threads=2,
        skipped={"peer": "not installed"},
        report=lines.append,
    )
    assert found.categories == ["qa", "rag"]
    assert found.prompt_tokens == [1, 2]
    assert found.skipped == {"peer": "not installed"}
    assert found.provenance.threads == 2
    assert re.match(r"good: loaded in \d", lines[0])
    assert found.arms[0].about == {"engine": "fake good"}


def test_an_arm_that_stops_early_is_refused():
    with pytest.raises(OutriderError, match="'short' made 3 tokens where 4 were asked for"):
        run([arm("short")], WORKLOAD, name="n", warmup=0, repeats=1)


def test_an_arm_that_dies_ends_the_run_with_its_last_words():
    with pytest.raises(OutriderError, match=r"'dies' ended with exit code 4.*the last word"):
        run([arm("good"), arm("dies")], WORKLOAD, name="n", warmup=0, repeats=1)


@pytest.mark.parametrize(
    ("arms", "workload", "repeats"),
    [([], WORKLOAD, 1), ([arm("good")], Workload((), 4), 1), ([arm("good")], WORKLOAD, 0)],
    ids=["no arm", "no prompt", "no repeat"],
)
def test_an_empty_benchmark_is_refused(arms, workload, repeats):
    with pytest.raises(UsageError, match="at least one arm, one prompt and one repeat"):
        run(arms, workload, name="n", repeats=repeats)
