"""What passes cost: learnt for plain and for drafted ones apart, never falling with the width."""

import numpy as np
import pytest
from engine.running import engine_of, finish, tiny_target
from fakes import RandomTree
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.costs import PRIOR, WIDTHS, Costs
from outrider.engine.params import SamplingParams

OBSERVATIONS = st.lists(st.tuples(st.integers(1, 80), st.floats(1e-6, 10), st.integers(1, 8)), max_size=40)


def taught(passes: dict[tuple[int, int], float], times: int = 50) -> Costs:
    """Costs that saw passes of (width, rows) take so many seconds, in turn."""
    costs = Costs()
    for _ in range(times):
        for (width, rows), seconds in passes.items():
            costs.observe(width, seconds, rows=rows)
    return costs


def test_before_anything_is_measured_the_prior_holds():
    assert [Costs().of(width) for width in WIDTHS] == list(PRIOR)
    assert Costs().of(4, rows=4) == PRIOR[WIDTHS.index(16)] / PRIOR[WIDTHS.index(4)]


@given(OBSERVATIONS, st.integers(1, 8))
def test_a_wider_pass_never_costs_less_and_one_node_costs_one(observations, rows):
    costs = Costs()
    for width, seconds, among in observations:
        costs.observe(width, seconds, rows=among)
    found = [costs.of(width, rows) for width in range(1, 100)]
    assert found[0] == 1
    assert found == sorted(found)


def test_measured_ratios_are_given_back_but_for_half_a_pass_of_the_prior():
    costs = taught({(1, 1): 0.010, (8, 1): 0.030}, times=100)
    assert costs.of(8) == pytest.approx((8 * 3.0 + 0.5 * PRIOR[WIDTHS.index(8)]) / 8.5, rel=0.01)


@pytest.mark.parametrize("rows", [1, 3, 5, 7, 9, 10, 13, 17, 31, 100])
def test_batches_of_any_number_of_rows_learn(rows):
    costs = taught({(1, rows): 0.010, (2, rows): 0.030, (5, rows): 0.050})
    assert costs.knows(rows)
    assert costs.of(2, rows) == pytest.approx(3.0, rel=0.1)
    assert costs.of(5, rows) == pytest.approx(5.0, rel=0.1)


def test_a_plain_pass_is_not_measured_by_drafted_ones_of_as_many_nodes():
    costs = taught({(1, 1): 0.010, (2, 1): 0.040, (4, 1): 0.041})  # 0.030 of them are the drafter's own
    assert not costs.knows(4)
    for _ in range(20):
        costs.observe(1, 0.012, rows=4)
        costs.observe(2, 0.044, rows=4)
    assert costs.knows(4)
    assert costs.of(2, rows=4) == pytest.approx(44 / 12, rel=0.1)
    assert costs.of(4) == pytest.approx(4.1, rel=0.1), "nor the other way round"


def test_what_one_number_of_rows_learnt_serves_another():
    costs = taught({(1, 4): 0.010, (4, 4): 0.040})
    assert costs.of(2, rows=8) > 2 * Costs().of(2, rows=8)


def test_a_width_that_seemed_dear_once_is_tried_again_later():
    costs = taught({(1, 1): 0.010, (8, 1): 1.0}, times=2)
    dear = costs.of(8)
    for _ in range(1000):
        costs.observe(1, 0.010)
    assert costs.of(8) < 2 * PRIOR[WIDTHS.index(8)] < dear


def test_a_plain_pass_that_was_disturbed_is_measured_again_by_and_by():
    costs = taught({(1, 1): 0.100, (8, 1): 0.030}, times=2)  # it takes 0.010 when nothing else runs
    assert costs.knows(1)
    plain = 0
    for _ in range(2000):
        if costs.knows(1):
            costs.observe(8, 0.030)
        else:
            costs.observe(1, 0.010)
            plain += 1
    assert 1 <= plain <= 10
    assert costs.of(8) == pytest.approx(3.0, rel=0.1)


def test_one_disturbed_pass_is_let_in_little_by_little():
    costs = taught({(1, 1): 0.010, (8, 1): 0.020}, times=10)
    costs.observe(8, 60.0)
    assert costs.of(8) < 2.5


def test_one_disturbed_pass_of_a_new_width_does_not_make_the_others_dear():
    costs = taught({(1, 1): 0.010, (8, 1): 0.012, (16, 1): 0.016}, times=10)
    for _ in range(2):
        costs.observe(9, 60.0)
    assert costs.of(8) < 1.3
    assert costs.of(16) < 2
    assert costs.of(24) < 2.5


def test_a_cost_that_is_many_times_the_expected_one_is_soon_believed():
    costs = taught({(1, 1): 0.010}, times=3)
    for _ in range(5):
        costs.observe(8, 0.100)
    assert costs.of(8) > 6


def test_between_two_measured_widths_a_cost_is_between_theirs():
    costs = taught({(1, 1): 0.010, (8, 1): 0.020, (16, 1): 0.021})
    assert costs.of(8) < costs.of(12) <= costs.of(16)


def test_costs_that_do_not_learn_stay_as_they_are():
    costs = Costs(learn=False)
    costs.observe(1, 1.0)
    costs.observe(8, 100.0)
    assert costs.of(8) == Costs().of(8)
    assert costs.knows(3)


def test_the_first_pass_of_a_width_teaches_nothing():
    costs = taught(dict.fromkeys([(width, 1) for width in WIDTHS], 5.0), times=1)
    assert [costs.of(width) for width in WIDTHS] == list(PRIOR)
    assert not costs.knows(1)


def test_widths_not_seen_for_long_are_forgotten_where_there_are_too_many():
    generator = np.random.default_rng(0)
    costs = taught({(1, rows): 0.010 for rows in range(1, 40)}, times=2)
    for width in generator.integers(2, 5000, 20_000).tolist():
        costs.observe(width, 0.010 + 1e-5 * width)
    assert len(costs._drafted) <= 64
    assert all(costs.knows(rows) for rows in range(2, 40))


class Heard(Costs):
    """Costs that keep what they were told."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[tuple[int, int]] = []

    def observe(self, width: int, seconds: float, *, rows: int = 1) -> None:
        assert seconds > 0
        self.passes.append((width, rows))
        super().observe(width, seconds, rows=rows)


def test_the_engine_tells_how_wide_each_round_was_and_of_how_many_rows():
    costs, target = Heard(), tiny_target(7)
    requests = [((1, 2, 3), SamplingParams(max_tokens=size)) for size in (30, 4, 20)]
    sequences = finish(engine_of(target, RandomTree(7), slots=3, costs=costs), requests)
    three = sum(rows == 3 for _, rows in costs.passes)
    assert three > len(sequences[1].rounds), "an idle slot between two running ones is a row too"
    last = sequences[0].rounds[-1].drafted
    assert costs.passes[-1] == (1 + last, 1)
    assert len({width for width, _ in costs.passes}) > 3
