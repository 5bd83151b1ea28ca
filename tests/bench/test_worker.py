"""Workers: what they say, and each way in which they fail."""

import sys
import time
from pathlib import Path

import pytest

from outrider.bench.protocol import Request
from outrider.bench.worker import Worker
from outrider.errors import OutriderError

FAKE = Path(__file__).parent / "fake_arm.py"
REQUEST = Request(prompt_ids=[1, 2], max_tokens=4)


def fake(behaviour, *, step=0.0, timeout=30.0):
    return Worker(behaviour, [sys.executable, str(FAKE), behaviour, str(step)], timeout=timeout)


def test_a_worker_loads_answers_and_ends():
    with fake("good") as worker:
        ready = worker.wait_ready()
        answer = worker.generate(REQUEST)
    assert ready.ready == {"engine": "fake good"}
    assert ready.load_seconds >= 0
    assert answer.tokens == [3, 4, 5, 6]
    assert worker._process.returncode == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_peak_memory_counts_what_came_after_the_imports():
    with fake("grows") as worker:
        ready = worker.wait_ready()
        assert ready.rss_before_load > 2**20
        before = worker.peak_bytes()
        worker.generate(REQUEST)
        assert 2**26 <= worker.peak_bytes() - before < 2**26 + 2**24
        assert before < 2**24


def test_a_worker_that_dies_while_loading_is_quoted():
    with fake("dies-loading") as worker, pytest.raises(OutriderError) as caught:
        worker.wait_ready()
    assert str(caught.value) == (
        "Benchmark arm 'dies-loading' ended with exit code 3 while loading. Its last words: out of luck"
    )


def test_a_worker_that_dies_while_generating_is_quoted_in_one_line():
    with fake("dies") as worker:
        worker.wait_ready()
        with pytest.raises(OutriderError, match="exit code 4 while generating") as caught:
            worker.generate(REQUEST)
    assert str(caught.value).endswith("first | the last word")
    assert "\n" not in str(caught.value)


def test_asking_a_dead_worker_is_the_same_error():
    with fake("dies") as worker:
        worker.wait_ready()
        with pytest.raises(OutriderError):
            worker.generate(REQUEST)
        with pytest.raises(OutriderError, match="exit code 4 while"):
            worker.generate(REQUEST)


def test_a_worker_that_hangs_is_ended_in_time():
    start = time.monotonic()
    with (
        fake("hangs", timeout=1.5) as worker,
        pytest.raises(OutriderError, match=r"still loading after 1\.5 s"),
    ):
        worker.wait_ready()
    assert time.monotonic() - start < 10


def test_a_worker_that_prints_rubbish_is_quoted():
    with fake("rubbish") as worker:
        with pytest.raises(OutriderError, match="'Hello, I am no message' while loading"):
            worker.wait_ready()
        worker._process.kill()


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(OutriderError, match=r"Cannot start benchmark arm 'x'.*No such file"):
        Worker("x", ["/nowhere/program"])
