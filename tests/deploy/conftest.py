"""Servers of the simulated engine."""

import pytest
from deploy.environment import free_port, write_environment

from outrider.adapters.start import STARTERS, Deployment, Draft
from outrider.deploy.process import Process


@pytest.fixture
def engine_python(tmp_path):
    return write_environment(tmp_path / "environment")


@pytest.fixture
def simulate(engine_python, tmp_path, monkeypatch):
    """Start the simulated engine in some modes; it is stopped at the end."""
    started = []

    def start(*modes, drafted=3, turn=0):
        monkeypatch.setenv("SIMULATED", ",".join(modes))
        monkeypatch.setenv("SIMULATED_TURN", str(turn))
        draft = Draft("ngram", None, drafted) if drafted else None
        deployment = Deployment(target="org/T", draft=draft, port=free_port())
        command = STARTERS["vllm"].command(deployment, python=engine_python)
        process = Process(command, tmp_path / f"server-{len(started)}.log", grace=2.0)
        started.append(process)
        return process, f"http://127.0.0.1:{deployment.port}"

    yield start
    for process in started:
        process.stop()
