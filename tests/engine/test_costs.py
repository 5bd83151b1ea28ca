"""What passes cost: learnt at the table's widths, never falling with the width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.costs import PRIOR, WIDTHS, Costs

OBSERVATIONS = st.lists(st.tuples(st.integers(1, 80), st.floats(1e-6, 10)), max_size=40)


def test_before_anything_is_measured_the_prior_holds():
    assert [Costs().of(width) for width in WIDTHS] == list(PRIOR)


@given(OBSERVATIONS, st.integers(1, 8))
def test_a_wider_pass_never_costs_less_and_one_node_costs_one(observations, rows):
    costs = Costs()
    for width, seconds in observations:
        costs.observe(width, seconds)
    found = [costs.of(width, rows) for width in range(1, 100)]
    assert found[0] == pytest.approx(1.0)
    assert found == sorted(found)


def test_measured_ratios_are_given_back_but_for_half_a_pass_of_the_prior():
    costs = Costs()
    for _ in range(100):
        costs.observe(1, 0.010)
        costs.observe(8, 0.030)
    assert costs.of(8) == pytest.approx((8 * 3.0 + 0.5 * PRIOR[WIDTHS.index(8)]) / 8.5, rel=0.01)


def test_a_width_that_seemed_dear_once_is_tried_again_later():
    costs = Costs()
    for _ in range(2):
        costs.observe(1, 0.010)
        costs.observe(8, 1.0)
    dear = costs.of(8)
    for _ in range(1000):
        costs.observe(1, 0.010)
    assert costs.of(8) < 2 * PRIOR[WIDTHS.index(8)] < dear


def test_batches_that_never_run_one_node_learn_too():
    costs = Costs()
    for _ in range(50):
        costs.observe(4, 0.010)
        costs.observe(16, 0.040)
    assert costs.of(4, rows=4) == pytest.approx(4.0, rel=0.1)


def test_one_disturbed_pass_is_let_in_little_by_little():
    costs = Costs()
    for _ in range(10):
        costs.observe(1, 0.010)
        costs.observe(8, 0.020)
    costs.observe(8, 60.0)
    assert costs.of(8) < 2.5


def test_costs_that_do_not_learn_stay_as_they_are():
    costs = Costs(learn=False)
    costs.observe(1, 1.0)
    costs.observe(8, 100.0)
    assert costs.of(8) == Costs().of(8)


def test_the_first_pass_of_a_width_teaches_nothing():
    costs = Costs()
    for width in WIDTHS:
        costs.observe(width, 5.0)
    assert [costs.of(width) for width in WIDTHS] == list(PRIOR)
