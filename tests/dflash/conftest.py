"""The trained pair, made once a session."""

import pytest
from dflash.pair import Pair, trained_pair


@pytest.fixture(scope="session")
def pair() -> Pair:
    return trained_pair()
