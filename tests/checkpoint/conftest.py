"""No test here reaches a network or the user's caches, save those marked ``model``."""

import pytest


@pytest.fixture(autouse=True)
def isolated(own_caches):
    pass
