"""When a drafter that costs a pass of its own rests: simulated rounds of known worth."""

import numpy as np
import pytest
from fakes import Free

from outrider.drafters.pause import Pause
from outrider.engine.costs import Costs

ROUNDS = 4000


def drafted(gains, rounds: int = ROUNDS) -> list[bool]:
    """Which rounds are drafted, where a drafted one gains what comes next."""
    pause, found = Pause(), []
    for gain in gains:
        found.append(not pause.resting(Free(), 1))
        if found[-1]:
            pause.learn(gain)
        if len(found) == rounds:
            break
    return found


def chance(lucky: float, gain: float, loss: float):
    """Gains with so many lucky rounds."""
    generator = np.random.default_rng(0)
    while True:
        yield gain if generator.random() < lucky else -loss


def forever(gain: float):
    while True:
        yield gain


def test_a_drafter_that_pays_never_rests():
    assert all(drafted(forever(0.1)))


def test_one_that_never_pays_rests_longer_and_longer():
    found = drafted(forever(-0.1))
    starts = [index for index in range(1, ROUNDS) if found[index] and not found[index - 1]]
    lengths = np.diff([0, *starts]) - 8
    assert found[:8] == [True] * 8
    assert lengths[:6].tolist() == [8, 16, 32, 64, 128, 128]


@pytest.mark.parametrize(
    ("lucky", "gain", "loss", "most"), [(0.1, 0.75, 0.25, 0.12), (0.2, 0.5, 0.5, 0.1), (0.3, 0.7, 0.5, 0.2)]
)
def test_single_lucky_rounds_do_not_shorten_the_rests_of_a_drafter_that_loses(lucky, gain, loss, most):
    assert sum(drafted(chance(lucky, gain, loss))) < most * ROUNDS


def test_a_drafter_that_gets_better_is_heard_again_and_then_soon_rested_anew():
    pause = Pause()

    def round_of(gain: float) -> bool:
        if pause.resting(Free(), 1):
            return False
        pause.learn(gain)
        return True

    assert sum(round_of(-0.5) for _ in range(600)) < 100
    assert sum(round_of(0.5) for _ in range(600)) > 450
    lost = [round_of(-0.5) for _ in range(60)]
    assert sum(lost) < 40
    assert sum(lost[-40:]) >= 8, "the first rest after good times is a short one"


def test_it_rests_until_a_plain_pass_of_so_many_rows_is_measured():
    pause, costs = Pause(), Costs()
    costs.observe(1, 0.01)
    assert pause.resting(costs, 1)
    costs.observe(1, 0.01)
    assert not pause.resting(costs, 1)
    assert pause.resting(costs, 5)
