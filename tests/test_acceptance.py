"""Acceptance measures: small cases by hand, identities by property."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.acceptance import Acceptance, Interval, Round
from outrider.errors import UsageError


@st.composite
def rounds(draw):
    depth = draw(st.integers(0, 6))
    drafted = depth + draw(st.integers(0, 5)) if depth else 0
    return Round(drafted=drafted, depth=depth, accepted=draw(st.integers(0, depth)))


measurements = st.lists(st.lists(rounds(), max_size=5), max_size=5).map(Acceptance.from_sequences)

BY_HAND = Acceptance.from_sequences([[Round(4, 4, 4), Round(4, 4, 1)], [Round(2, 2, 0), Round(0, 0, 0)]])


def test_counts_are_sums_over_rounds():
    assert (BY_HAND.num_rounds, BY_HAND.num_drafted, BY_HAND.num_accepted) == (4, 10, 5)


def test_length_and_rate_are_pooled_over_rounds():
    assert (BY_HAND.length, BY_HAND.rate) == (2.25, 0.5)


def test_position_rates_are_shares_of_all_rounds():
    assert BY_HAND.position_rates == (0.5, 0.25, 0.25, 0.25)


def test_conditional_rates_divide_by_the_position_before():
    assert BY_HAND.conditional_rates == (0.5, 0.5, 1.0, 1.0)


def test_a_conditional_rate_after_a_position_never_accepted_is_unknown():
    assert Acceptance.from_sequences([[Round(2, 2, 0)]]).conditional_rates == (0.0, None)


def test_a_tree_counts_nodes_in_the_rate_and_depth_in_the_positions():
    tree = Acceptance.from_sequences([[Round(drafted=7, depth=3, accepted=2)]])
    assert (tree.length, tree.rate, tree.position_rates) == (3.0, 2 / 7, (1.0, 1.0, 0.0))


def test_without_rounds_nothing_is_claimed():
    empty = Acceptance.from_sequences([[], []])
    assert (empty.num_rounds, empty.length, empty.rate, empty.position_rates) == (0, None, None, ())
    assert empty.intervals().length is None


def test_plain_decoding_has_length_one_and_no_rate():
    plain = Acceptance.from_sequences([[Round(0, 0, 0)] * 3])
    assert (plain.length, plain.rate) == (1.0, None)
    assert plain.intervals().rate is None
    assert plain.intervals().length == Interval(1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "counts",
    [(3, 3, 4), (2, 3, 1), (3, 3, -1), (2, 0, 0)],
    ids=["accepted", "depth", "sign", "flat"],
)
def test_an_impossible_round_is_refused(counts):
    with pytest.raises(UsageError, match="0 <= accepted <= depth <= drafted") as caught:
        Round(*counts)
    assert "\n" not in str(caught.value)


@given(measurements)
def test_length_is_one_plus_the_sum_of_position_rates(measured):
    if measured.length is not None:
        assert math.isclose(measured.length, 1 + sum(measured.position_rates))


@given(measurements)
def test_position_rates_never_rise(measured):
    assert list(measured.position_rates) == sorted(measured.position_rates, reverse=True)


@given(measurements)
def test_conditional_rates_multiply_to_the_position_rates(measured):
    product = 1.0
    for u, c in zip(measured.position_rates, measured.conditional_rates, strict=True):
        product *= 0.0 if c is None else c
        assert math.isclose(u, product, abs_tol=1e-12)


@given(measurements, measurements, measurements)
def test_merging_is_associative_and_adds_counts(a, b, c):
    assert (a + b) + c == a + (b + c)
    assert (a + b).num_accepted == a.num_accepted + b.num_accepted
    assert (a + Acceptance()) == a


@settings(max_examples=40, deadline=None)
@given(measurements)
def test_intervals_contain_the_value(measured):
    found = measured.intervals(resamples=50)
    everything = [found.length, found.rate, *found.positions]
    values = [measured.length, measured.rate, *measured.position_rates]
    for interval, value in zip(everything, values, strict=True):
        if interval is None:
            assert value is None
        else:
            assert interval.value == value
            assert interval.low <= value <= interval.high


MIXED = [Round(4, 4, a) for a in (0, 1, 4, 2, 0, 3)]


def test_intervals_shrink_with_data():
    few = Acceptance.from_sequences([[r] for r in MIXED]).intervals()
    many = Acceptance.from_sequences([[r] for r in MIXED * 16]).intervals()
    ratio = (few.length.high - few.length.low) / (many.length.high - many.length.low)
    assert 3 < ratio < 5  # sixteen times the data, a quarter of the width


def test_intervals_match_the_normal_approximation_on_many_rounds():
    found = Acceptance.from_sequences([[r] for r in MIXED * 50]).intervals().length
    counts = [r.accepted for r in MIXED]
    mean = sum(counts) / 6
    error = math.sqrt(sum((a - mean) ** 2 for a in counts) / 6 / 300)
    assert found.value == pytest.approx(1 + mean)
    assert found.low == pytest.approx(1 + mean - 1.96 * error, abs=0.03)
    assert found.high == pytest.approx(1 + mean + 1.96 * error, abs=0.03)


def test_correlated_rounds_of_a_text_widen_the_interval():
    texts = [[Round(4, 4, a)] * 20 for a in (0, 1, 4, 2, 0, 3)]
    clustered = Acceptance.from_sequences(texts).intervals()
    as_if_independent = Acceptance.from_sequences([[r] for text in texts for r in text]).intervals()
    assert clustered.unit == "sequences"
    assert clustered.length.high - clustered.length.low > 3 * (
        as_if_independent.length.high - as_if_independent.length.low
    )


def test_a_single_sequence_resamples_rounds_and_says_so():
    found = Acceptance.from_sequences([MIXED]).intervals()
    assert found.unit == "rounds"
    assert found.length.low < found.length.value < found.length.high


def test_the_same_seed_gives_the_same_interval():
    measured = Acceptance.from_sequences([MIXED * 3])
    assert measured.intervals(seed=7) == measured.intervals(seed=7)
    assert measured.intervals(seed=7) != measured.intervals(seed=8)
