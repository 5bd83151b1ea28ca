"""No test here reaches a network or the user's caches, save those marked ``model``."""

import io

import huggingface_hub
import pytest
from command_line import run_cli
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError
from tiny_model import write_tiny_model


@pytest.fixture(autouse=True)
def isolated(request, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    if request.node.get_closest_marker("model"):
        return
    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path / "outrider-cache"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    connect_error = HfHubHTTPError.__bases__[0]

    def refuse(*args, **kwargs):
        raise connect_error("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def run(capsys):
    return lambda *arguments: run_cli(capsys, *arguments)
