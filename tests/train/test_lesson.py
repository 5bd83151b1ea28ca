"""What a block sees and what it is asked for, against a reading of the rules one slot at a time."""

from dataclasses import replace

import pytest
import torch
from dflash.random_drafter import MASKS, config_of
from train.rows import batch_of

from outrider.train.lesson import Lesson, make_blocks
from outrider.train.visibility import dense

TEXTS = [list(range(100, 121)), list(range(200, 209)), list(range(300, 330)), list(range(400, 417))]
RESPONSES = (6, 2, 11, 12)
BLOCK = 8


def batch():
    return batch_of(TEXTS, RESPONSES, block_size=BLOCK)


def lesson_of(**changes) -> Lesson:
    return Lesson.served(config_of(**changes))


def anchors_of(made):
    """Of each block that there is: its row, its column, its text and its place in it."""
    for place in made.blocks_P.tolist():
        row, index = divmod(place, made.anchors_BA.shape[1])
        column = int(made.anchors_BA[row, index])
        token = int(made.tokens_BT[row, column])
        yield row, index, column, TEXTS[token // 100 - 1], token % 100


@pytest.mark.parametrize("anchor_predicts", [False, True])
def test_slot_k_is_asked_for_the_token_k_places_behind_the_anchor(anchor_predicts):
    made, lesson = batch(), lesson_of(anchor_predicts=anchor_predicts)
    labels = make_blocks(made, lesson).labels_PK
    assert labels.shape[1] == BLOCK - (not anchor_predicts)
    for block, (_, _, _, text, place) in enumerate(anchors_of(made)):
        follows = text[place + 1 : place + 1 + labels.shape[1]]
        assert labels[block].tolist() == follows + [-1] * (labels.shape[1] - len(follows))
        assert follows


def test_the_targets_law_is_that_of_the_row_before_the_label():
    made = batch()
    blocks = make_blocks(made, lesson_of())
    asked = blocks.labels_PK >= 0
    before = made.tokens_BT.flatten()[blocks.before_PK]
    assert (before[asked] + 1 == blocks.labels_PK[asked]).all()


def test_slots_hold_the_anchor_and_masks_at_the_places_they_guess():
    made, lesson = batch(), lesson_of()
    blocks = make_blocks(made, lesson)
    for row, index, column, _, place in anchors_of(made):
        assert blocks.ids_BAN[row, index].tolist() == [int(made.tokens_BT[row, column]), *[lesson.mask_token] * 7]
        start = made.tokens_BT.shape[1] + index * BLOCK
        assert blocks.positions_BS[row, start : start + BLOCK].tolist() == list(range(place, place + BLOCK))


def may_see(made, mask, *, query: tuple[int, int, int], key: int, end: int = 0) -> bool:
    """The rule, for one slot (row, block, slot) and one key."""
    row, index, slot = query
    column, length = int(made.anchors_BA[row, index]), made.tokens_BT.shape[1]
    if column < 0:  # a block that is not there sees itself, and nobody asks
        return (
            key >= length
            and (key - length) // BLOCK == index
            and (not mask.causal or key - length <= index * BLOCK + slot)
        )
    position = int(made.position_BT[row, column])
    if key < length:
        same = made.document_BT[row, key] == made.document_BT[row, column]
        at = int(made.position_BT[row, key])
        near = mask.window is None or position + slot - at < mask.window
        return bool(same) and at < position + end and near
    other, place = divmod(key - length, BLOCK)
    near = mask.window is None or abs(slot - place) < mask.window
    return other == index and near and (not mask.causal or place <= slot)


@pytest.mark.parametrize("mask", sorted({mask for masks in MASKS.values() for mask in masks}, key=str), ids=str)
def test_a_slot_sees_the_context_before_its_anchor_and_its_own_block(mask):
    made = batch()
    seen = dense(make_blocks(made, lesson_of()), mask)
    rows, _, slots, keys = seen.shape
    for row in range(rows):
        for query in range(0, slots, 3):
            wanted = [may_see(made, mask, query=(row, *divmod(query, BLOCK)), key=key) for key in range(keys)]
            assert seen[row, 0, query].tolist() == wanted


def test_no_slot_sees_its_anchors_features_unless_that_is_the_lesson():
    made, mask = batch(), MASKS["full"][0]
    right = dense(make_blocks(made, lesson_of()), mask)
    wrong = dense(make_blocks(made, replace(lesson_of(), context_end=1)), mask)
    for row, index, column, _, _ in anchors_of(made):
        assert not right[row, 0, index * BLOCK : (index + 1) * BLOCK, column].any()
        assert wrong[row, 0, index * BLOCK : (index + 1) * BLOCK, column].all()
    assert int((wrong & ~right).sum()) == BLOCK * len(made.blocks_P)


def test_every_slot_sees_something():
    made = batch_of([[1, 2, 3, 4]], [2], rows=3, block_size=BLOCK)
    for mask in {mask for masks in MASKS.values() for mask in masks}:
        assert dense(make_blocks(made, lesson_of()), mask).any(-1).all()


def test_shifted_labels_are_one_place_further_on():
    made = batch()
    right, wrong = (make_blocks(made, replace(lesson_of(), label_shift=shift)).labels_PK for shift in (0, 1))
    assert torch.equal(wrong[:, :-1], right[:, 1:])
