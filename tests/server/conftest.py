"""A real server: our own command, in a process, on a loopback port; a tiny random model behind it."""

import json

import pytest
from server.serving import Served, served
from tiny_model import write_tiny_model

LONGEST = 4096


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A model of random weights that goes on and on."""
    return write_tiny_model(tmp_path_factory.mktemp("server") / "tiny", max_position_embeddings=LONGEST)


@pytest.fixture(scope="session")
def server(tiny) -> Served:
    with served(tiny, "--drafter", "ngram", "--slots", 3, "--max-len", 512) as running:
        yield running


@pytest.fixture
def ask(server):
    return server.post


@pytest.fixture
def greedy(server):
    """The greedy text of a prompt, asked alone."""

    def text(prompt, max_tokens):
        wishes = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
        return json.loads(server.post("/v1/completions", wishes).body)["choices"][0]["text"]

    return text
