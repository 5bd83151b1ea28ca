"""The number of nodes with the most expected tokens a second, against a search by hand."""

import pytest
from fakes import Free
from hypothesis import given
from hypothesis import strategies as st

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
        return self._prices[width * rows] / self._prices[rows]


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
    allowed = [width - 1 for width in WIDTHS if least <= width - 1 <= len(reach)]

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


def test_where_nothing_beats_plain_decoding_nothing_is_drafted_unless_it_must_be():
    costs = Priced(dict.fromkeys(WIDTHS, 3.0) | {1: 1.0})
    assert how_many_pay([0.5, 0.2, 0.1], costs, 1) == 0
    assert how_many_pay([0.5, 0.2, 0.1], costs, 1, least=1) == 3


def test_rows_of_a_batch_pay_for_each_other():
    costs = Costs(learn=False)
    reach = [0.55 * 0.8**node for node in range(63)]
    alone, together = how_many_pay(reach, costs, 1), how_many_pay(reach, costs, 16)
    assert alone > together > 0


def test_where_nodes_are_free_all_are_taken_whose_width_is_learnt():
    assert how_many_pay([0.01] * 63, Free(), 1) == 63
    assert how_many_pay([0.01] * 40, Free(), 1) == 31


def test_the_mean_over_rows_counts_missing_nodes_as_nothing():
    assert mean_reach([[0.8, 0.4], [], [0.4]]) == pytest.approx([0.4, 0.4 / 3])
    assert mean_reach([[0.3, 0.2]]) == [0.3, 0.2]
