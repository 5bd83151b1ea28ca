"""The fitted curve finds the curve that made the points, says how sure it is, and foretells."""

import numpy as np
import pytest

from outrider.train.report.fit import fit, foretold

SEEN = list(np.linspace(2e6, 80e6, 40))


def rising(seen, *, end=4.2, scale=1.1, power=0.5):
    return [end - scale * (x / SEEN[-1]) ** -power for x in seen]


@pytest.mark.parametrize("power", [0.2, 0.5, 1.0])
def test_points_on_a_curve_give_its_end_and_its_gain(power):
    found = fit(SEEN, rising(SEEN, power=power), limit=16)
    assert found is not None
    assert found.exponent == pytest.approx(power, rel=0.03)
    assert found.end.value == pytest.approx(4.2, rel=0.03)
    assert found.doubling.value == pytest.approx(1.1 * (1 - 2**-power), rel=0.03)
    assert found.at(SEEN[-1]) == pytest.approx(3.1, abs=0.01)


def test_the_interval_holds_the_true_gain_about_as_often_as_it_says():
    true, hits = 1.1 * (1 - 2**-0.5), 0
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 0.04, len(SEEN))
        found = fit(SEEN, list(rising(SEEN) + noise), limit=16, seed=seed)
        assert found is not None
        hits += found.doubling.low <= true <= found.doubling.high
    assert 34 <= hits <= 40


def test_a_loss_falls_to_its_end_and_never_below_0():
    values = [1.5 + 2.0 * (x / SEEN[-1]) ** -0.5 for x in SEEN]
    found = fit(SEEN, values, rising=False, limit=0.0)
    assert found is not None
    assert found.end.value == pytest.approx(1.5, rel=0.05)
    assert found.doubling.value == pytest.approx(2.0 * (1 - 2**-0.5), rel=0.03)
    straight = fit(SEEN, [3.0 - 2.9 * x / SEEN[-1] for x in SEEN], rising=False, limit=0.0)
    assert straight is not None
    assert straight.end.low >= 0


def test_no_end_lies_beyond_the_limit():
    found = fit(SEEN, [1 + 2 * np.log1p(x / 1e6) / np.log(81) for x in SEEN], limit=4.0)
    assert found is not None
    assert found.end.high <= 4.0


def test_a_curve_that_falls_where_it_should_rise_gains_nothing():
    found = fit(SEEN, [4 - x / SEEN[-1] for x in SEEN])
    assert found is not None
    assert found.doubling.value == 0.0


def test_few_smooth_points_are_given_the_noise_of_a_measurement():
    few, values = SEEN[4::7], rising(SEEN[4::7])
    sure, unsure = fit(few, values), fit(few, values, noise=0.05)
    assert sure is not None
    assert unsure is not None
    assert unsure.doubling.high - unsure.doubling.low > 10 * (sure.doubling.high - sure.doubling.low)


def test_too_few_points_give_no_fit():
    assert fit(SEEN[:4], rising(SEEN[:4])) is None
    assert fit([], []) is None
    assert fit([0.0] * 8, [1.0] * 8) is None


def test_half_of_a_curve_foretells_its_other_half():
    said = foretold(SEEN, rising(SEEN), limit=16)
    assert said is not None
    assert said.value == pytest.approx(3.1, abs=0.02)
    assert foretold(SEEN[:6], rising(SEEN[:6])) is None


def test_what_comes_before_the_law_holds_is_left_out():
    late = [x for x in SEEN if x >= 0.05 * SEEN[-1]]
    values = [0.0 if x < late[0] else value for x, value in zip(SEEN, rising(SEEN), strict=True)]
    found = fit(SEEN, values, limit=16)
    assert found is not None
    assert found.points == len(late)
    assert found.end.value == pytest.approx(4.2, rel=0.03)
