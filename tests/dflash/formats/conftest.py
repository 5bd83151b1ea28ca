import pytest
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
