"""What every test runs under: one thread, no network but loopback, a clean environment, fixed examples.

Tests of the real model are marked ``model`` and take the fixture ``real_model``.
"""

import ipaddress
import socket

import pytest
import torch
from hypothesis import settings

settings.register_profile("repository", derandomize=True, deadline=None, max_examples=25, database=None)
settings.load_profile("repository")

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def pytest_configure(config):
    # Tiny models gain nothing from a second thread, and where cores are shared it costs tenfold (spinning barriers).
    torch.set_num_threads(1)


def _is_loopback(host) -> bool:
    if host in ("localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _guarded(connect):
    def guard(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise PermissionError(f"A test tried to reach {address}; only loopback is allowed.")
        return connect(self, address)

    return guard


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch):
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))


@pytest.fixture(autouse=True)
def clean_environment(request, monkeypatch):
    if request.node.get_closest_marker("model"):
        return
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def own_caches(request, monkeypatch, tmp_path):
    """Neither the user's caches nor a hub, save for tests marked ``model``."""
    if request.node.get_closest_marker("model"):
        return
    import huggingface_hub
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path / "outrider-cache"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    connect_error = HfHubHTTPError.__bases__[0]

    def refuse(*args, **kwargs):
        raise connect_error("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)


@pytest.fixture(scope="session")
def real_model():
    """A runner of smollm2-135m with plain decoding; ``with_drafter`` gives the others."""
    from outrider.runner import load

    return load("smollm2-135m", max_len=1024)
