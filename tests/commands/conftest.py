"""No test here reaches a network or the user's caches, save those marked ``model``."""

import io

import pytest
from command_line import run_cli
from tiny_model import write_tiny_model


@pytest.fixture(autouse=True)
def isolated(own_caches, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def run(capsys):
    return lambda *arguments: run_cli(capsys, *arguments)
