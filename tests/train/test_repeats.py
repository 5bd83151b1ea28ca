"""Texts that loop are found where they begin to."""

import numpy as np
import pytest

from outrider.train.repeats import RUN, loop_start


def start_by_counting(tokens, most):
    """The same by a plain count."""
    seen = {}
    for end in range(RUN, len(tokens) + 1):
        run = tuple(tokens[end - RUN : end])
        seen[run] = seen.get(run, 0) + 1
        if seen[run] > most:
            return end - 1
    return None


@pytest.mark.parametrize("period", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("most", [1, 3, 6])
def test_a_loop_is_cut_where_a_run_comes_once_too_often(period, most):
    rng = np.random.default_rng(period)
    tokens = np.concatenate([rng.integers(1000, 2000, 40), np.tile(rng.integers(0, 1000, period), 40)]).astype(np.int32)
    found = loop_start(tokens, most)
    assert found is not None
    assert found == start_by_counting(tokens.tolist(), most)


def test_texts_of_few_words_are_counted_right():
    rng = np.random.default_rng(0)
    for _ in range(200):
        tokens = rng.integers(0, 2, rng.integers(1, 120)).astype(np.int32)
        assert loop_start(tokens, 2) == start_by_counting(tokens.tolist(), 2)


def test_a_text_that_repeats_less_is_left_alone():
    tokens = np.tile(np.arange(20, dtype=np.int32), 6)
    assert loop_start(tokens, 6) is None
    assert loop_start(tokens, 5) is not None
    assert loop_start(np.arange(3, dtype=np.int32), 1) is None
