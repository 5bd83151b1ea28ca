"""Documents in rows: all of them, none twice, and little room left over."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outrider.train.packing import pack

LENGTH = 100


@given(st.lists(st.integers(1, LENGTH), max_size=80))
def test_every_document_is_in_one_row_and_no_row_is_too_long(lengths):
    rows = pack(lengths, range(len(lengths)), LENGTH)
    assert sorted(document for row in rows for document in row) == list(range(len(lengths)))
    assert all(sum(lengths[document] for document in row) <= LENGTH for row in rows)


def test_rows_are_nearly_full():
    lengths = np.random.default_rng(0).integers(10, LENGTH + 1, 2000).tolist()
    rows = pack(lengths, range(len(lengths)), LENGTH)
    assert sum(lengths) / (len(rows) * LENGTH) > 0.95


def test_only_what_is_ordered_is_packed():
    assert pack([60, 60, 40], [2, 0], LENGTH) == [[2, 0]]
