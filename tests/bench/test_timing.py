"""Speeds and ratios by hand and by property."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.bench.timing import Work, median_or_none, speed, speed_ratio, typical
from outrider.errors import UsageError

works = st.builds(Work, st.integers(1, 200), st.floats(0.01, 100))
pairs = st.lists(st.tuples(works, works), min_size=1, max_size=8)


def test_speed_is_pooled_not_a_mean_of_speeds():
    assert speed([Work(10, 1.0), Work(10, 4.0)]) == 4.0


def test_no_time_has_no_speed():
    assert speed([]) is None


def test_the_typical_repeat_has_the_median_time():
    assert typical([Work(1, 9.0), Work(2, 1.0), Work(3, 2.0)]) == Work(3, 2.0)
    assert typical([Work(1, 4.0), Work(2, 1.0), Work(3, 2.0), Work(4, 3.0)]) == Work(3, 2.0)


def test_the_median_of_nothing_is_none():
    assert (median_or_none([]), median_or_none([3, 1, 2])) == (None, 2)


def test_a_ratio_of_speeds_allows_for_unequal_tokens():
    found = speed_ratio([Work(20, 1.0), Work(20, 3.0)], [Work(10, 1.0), Work(10, 1.0)])
    assert found.value == 1.0


def test_a_constant_ratio_has_no_width():
    base = [Work(10, t) for t in (1.0, 2.0, 5.0)]
    found = speed_ratio([Work(10, w.seconds / 2) for w in base], base)
    assert (found.low, found.value, found.high) == pytest.approx((2, 2, 2))


def test_pairing_removes_what_both_share():
    """Prompts differ tenfold in time, the ratio by a tenth: only the ratio sets the width."""
    base = [Work(10, t) for t in (1.0, 3.0, 10.0, 2.0, 6.0)]
    factors = (1.9, 2.1, 2.0, 2.05, 1.95)
    ours = [Work(10, w.seconds / f) for w, f in zip(base, factors, strict=True)]
    found = speed_ratio(ours, base)
    assert 1.9 <= found.low < found.value < found.high <= 2.1


@settings(max_examples=40, deadline=None)
@given(pairs)
def test_the_interval_contains_the_ratio_and_the_inverse_is_the_inverse(drawn):
    ours, base = [a for a, _ in drawn], [b for _, b in drawn]
    found, inverse = speed_ratio(ours, base, resamples=50), speed_ratio(base, ours, resamples=50)
    assert found.low <= found.value <= found.high
    assert found.value * inverse.value == pytest.approx(1)


@pytest.mark.parametrize(
    ("ours", "base"),
    [([], []), ([Work(1, 1.0)], []), ([Work(1, 0.0)], [Work(1, 1.0)])],
    ids=["empty", "unpaired", "no time"],
)
def test_series_without_a_ratio_are_refused(ours, base):
    with pytest.raises(UsageError):
        speed_ratio(ours, base)
