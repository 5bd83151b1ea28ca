"""No test here reaches a network or the user's caches, save those marked ``model``."""

import huggingface_hub
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError


@pytest.fixture(autouse=True)
def isolated(request, monkeypatch, tmp_path):
    if request.node.get_closest_marker("model"):
        return
    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path / "outrider-cache"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    connect_error = HfHubHTTPError.__bases__[0]

    def refuse(*args, **kwargs):
        raise connect_error("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
