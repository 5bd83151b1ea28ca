"""Batches: the same for the same step, anchors where something follows, and drawn anew."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from train.rows import documents_of, reader_of

from outrider.train.batches import stratified

COUNT, LENGTH = 40, 48


def documents():
    draw = np.random.default_rng(0)
    lengths = draw.integers(6, LENGTH + 1, COUNT)
    responses = [int(draw.integers(1, length)) for length in lengths]
    return documents_of([draw.integers(1, 1000, length).tolist() for length in lengths], responses)


def whole(reader, epoch=0, step=0, rows=2):
    return reader.read(epoch, step, slice(0, rows))


def test_documents_lie_whole_in_their_rows():
    data, reader = documents(), reader_of(documents())
    known = {tuple(data.tokens(index).tolist()): int(data.first_D[index]) for index in range(COUNT)}
    for step in range(reader.steps(0)):
        batch = whole(reader, step=step)
        for row in range(2):
            for number in batch.document_BT[row].unique().tolist():
                inside = batch.document_BT[row] == number
                if number < 0:
                    continue
                tokens = tuple(batch.tokens_BT[row, inside].tolist())
                assert batch.position_BT[row, inside].tolist() == list(range(len(tokens)))
                expected = [position >= known[tokens] for position in range(len(tokens))]
                assert batch.response_BT[row, inside].tolist() == expected


def test_an_epoch_reads_no_document_twice_and_the_next_one_in_another_order():
    reader = reader_of(documents())
    seen = [
        [batch.tokens_BT[row, batch.document_BT[row] == number][:3].tolist() for row in range(2)
         for number in batch.document_BT[row].unique().tolist() if number >= 0]
        for epoch in (0, 1)
        for batch in (whole(reader, epoch, step) for step in range(reader.steps(epoch)))
    ]  # fmt: skip
    first = [text for texts in seen[: reader.steps(0)] for text in texts]
    second = [text for texts in seen[reader.steps(0) :] for text in texts]
    assert len(first) == len({tuple(text) for text in first}) > COUNT - 6
    assert first != second


def test_every_anchor_is_followed_by_a_token_of_the_response_of_its_own_document():
    reader = reader_of(documents())
    for step in range(reader.steps(0)):
        batch = whole(reader, step=step)
        rows, places = (batch.anchors_BA >= 0).nonzero(as_tuple=True)
        columns = batch.anchors_BA[rows, places]
        assert batch.response_BT[rows, columns + 1].all()
        assert (batch.document_BT[rows, columns] == batch.document_BT[rows, columns + 1]).all()
        assert (batch.blocks_P == rows * batch.anchors_BA.shape[1] + places).all()


def test_anchors_are_drawn_anew_in_every_epoch_and_no_two_are_the_same():
    reader = reader_of(documents_of([[1, 2, 3] * 16] * 2, [4, 4]), rows=2)
    drawn = [whole(reader, epoch).anchors_BA for epoch in range(8)]
    assert len({tuple(anchors.flatten().tolist()) for anchors in drawn}) == 8
    for anchors in drawn:
        for row in anchors.tolist():
            assert row == sorted(set(row))
    assert len(torch.stack(drawn).unique()) > 25  # of 44 places, by 96 draws in strata


def test_the_same_step_gives_the_same_batch_whoever_asks():
    one, other = reader_of(documents()), reader_of(documents())
    other.read(3, 0, slice(0, 2))
    for name in ("tokens_BT", "document_BT", "position_BT", "response_BT", "anchors_BA", "blocks_P"):
        assert torch.equal(getattr(whole(one, 1, 2), name), getattr(whole(other, 1, 2), name))


def test_processes_share_out_what_one_would_read():
    together = reader_of(documents(), rows=4)
    parts = [together.read(0, 1, slice(start, start + 2)) for start in (0, 2)]
    batch = together.read(0, 1, slice(0, 4))
    for name in ("tokens_BT", "position_BT", "anchors_BA"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(batch, name))


def test_a_batch_that_the_data_does_not_fill_is_padded():
    batch = whole(reader_of(documents_of([[1, 2, 3, 4]], [2]), rows=3), rows=3)
    assert batch.document_BT.ge(0).sum() == 4
    assert batch.anchors_BA.tolist()[0][:3] == [1, 2, -1]
    assert batch.blocks_P.tolist() == [0, 1]


@given(st.integers(0, 60), st.integers(1, 20), st.integers(0, 99))
def test_strata_give_each_part_its_share(places, count, seed):
    chosen = stratified(np.arange(places), count, np.random.default_rng(seed).random(count))
    assert len(chosen) == min(places, count)
    assert (np.diff(chosen) > 0).all()
    if places > count:
        assert (chosen * count // places >= np.arange(count) - 1).all()
        assert chosen.max() < places


def test_every_place_is_drawn_as_often_as_any_other():
    counts = np.zeros(50)
    for seed in range(4000):
        counts[stratified(np.arange(50), 7, np.random.default_rng(seed).random(7))] += 1
    assert counts.min() > 0.8 * counts.mean()
    assert counts.max() < 1.2 * counts.mean()


@pytest.mark.parametrize(("anchors", "starved"), [(1, 1), (16, 0)])
def test_the_log_is_told_of_documents_without_an_anchor(anchors, starved):
    batch = whole(reader_of(documents_of([[5] * 24, [6] * 24], [4, 4]), rows=1, anchors=anchors), rows=1)
    assert (batch.facts.responses, batch.facts.long, batch.facts.starved) == (40, 2, starved)
    assert batch.facts.phases_N.sum() == anchors
