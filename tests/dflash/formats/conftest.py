import json

import pytest
from command_line import run_cli
from dflash.formats.drafters import Target
from tiny_model import write_tiny_model


@pytest.fixture(autouse=True)
def isolated(own_caches):
    pass


@pytest.fixture(scope="session")
def target_folder(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("targets") / "tiny")


@pytest.fixture(scope="session")
def target(target_folder):
    return Target(target_folder)


@pytest.fixture
def run(capsys):
    return lambda *arguments: run_cli(capsys, "inspect", *arguments)


@pytest.fixture
def facts(run):
    """What ``--json`` says, and the exit code."""

    def read(*arguments):
        seen = run(*arguments, "--json")
        return json.loads(seen.out), seen.code

    return read


@pytest.fixture
def engines(facts):
    """What is said of each engine."""

    def read(*arguments):
        found, _ = facts(*arguments)
        return {engine["engine"]: engine for engine in found["engines"]}

    return read
