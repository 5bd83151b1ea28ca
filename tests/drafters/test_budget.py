"""The number of nodes with the most expected tokens a second, against a search by hand."""

import pytest
from fakes import Free
from hypothesis import given
from hypothesis import strategies as st
from numpy import interp

from outrider.drafters.budget import how_many_pay, mean_reach
from outrider.engine.costs import WIDTHS, Costs

REACH = st.lists(st.floats(0, 1), max_size=70).map(lambda values: sorted(values, reverse=True))
PRICES = st.lists(st.floats(0, 3), min_size=len(WIDTHS) - 1, max_size=len(WIDTHS) - 1)


class Priced(Costs):
    """A machine on which wider passes cost what a test says."""

    def __init__(self, prices: dict[int, float]) -> None:
        super().__init__(learn=False)
        self._prices = prices

    def of(self, width: int, rows: int = 1) -> float:
        return self._price(width * rows) / self._price(rows)

    def _price(self, nodes: int) -> float:
        return float(interp(nodes, list(self._prices), list(self._prices.values())))


def stairs(prices: list[float]) -> dict[int, float]:
    """Costs that never fall, with steps anywhere: no convex function."""
    costs = {1: 1.0}
    for width, price in zip(WIDTHS[1:], prices, strict=True):
        costs[width] = max(costs.values()) + price
    return costs


@given(REACH, PRICES, st.integers(0, 3))
def test_no_other_width_brings_more_tokens_for_its_cost(reach, prices, least):
    costs = Priced(stairs(prices))
    chosen = how_many_pay(reach, costs, 1, least=least)
    most = len(reach)
    allowed = [nodes for nodes in {*(width - 1 for width in WIDTHS), most} if least <= nodes <= most]

    def pace(nodes: int) -> float:
        return (1 + sum(reach[:nodes])) / costs.of(1 + nodes)

    if not allowed:
        assert chosen == 0
        return
    assert chosen in allowed
    assert pace(chosen) == pytest.approx(max(map(pace, allowed)))


def test_a_step_in_the_costs_does_not_end_the_search():
    costs = Priced(dict.fromkeys(WIDTHS, 2.0) | {1: 1.0})
    assert how_many_pay([0.7] * 31, costs, 1) == 31


def test_a_drafter_that_is_always_right_may_draft_all_it_has():
    assert [how_many_pay([1.0] * most, Free(), 1, least=1) for most in range(64)] == list(range(64))


def test_where_nothing_beats_plain_decoding_nothing_is_drafted_unless_it_must_be():
    costs = Priced(dict.fromkeys(WIDTHS, 3.0) | {1: 1.0})
    assert how_many_pay([0.5, 0.2, 0.1], costs, 1) == 0
    assert how_many_pay([0.5, 0.2, 0.1], costs, 1, least=1) == 3


def test_rows_of_a_batch_pay_for_each_other():
    costs = Costs(learn=False)
    reach = [0.55 * 0.8**node for node in range(63)]
    alone, together = how_many_pay(reach, costs, 1), how_many_pay(reach, costs, 16)
    assert alone > together > 0


def test_what_must_be_drafted_is_even_where_the_drafter_says_nothing_of_use():
    assert how_many_pay([float("nan")] * 5, Free(), 1, least=1) == 1
    assert how_many_pay([], Free(), 1, least=1) == 0
    assert how_many_pay([0.5], Free(), 1, least=2) == 0


def test_the_mean_over_rows_counts_missing_nodes_as_nothing():
    assert mean_reach([[0.8, 0.4], [], [0.4]]) == pytest.approx([0.4, 0.4 / 3])
    assert mean_reach([[0.3, 0.2]]) == [0.3, 0.2]
