"""Many texts at once are the texts that plain decoding writes one by one."""

from itertools import islice

import pytest
import torch
from engine.running import HYBRID, tiny_target
from train.writing import by_the_engine, item, items_of, write

from outrider.errors import UsageError
from outrider.train import ragged
from outrider.train import writer as writing
from outrider.train.steps import Steps
from outrider.train.writer import Limits, Writer

VOCAB = 40
LIMITS = Limits(max_len=48, max_tokens=24, stop_ids=frozenset({3, 7}))
WINDOWED = {
    "model_type": "qwen3",
    "head_dim": 8,
    "use_sliding_window": True,
    "sliding_window": 5,
    "max_window_layers": 0,
}


@pytest.fixture(scope="module")
def target():
    return tiny_target(VOCAB, num_hidden_layers=2)


def check_equal(target, items, limits=LIMITS, **options):
    written = write(target, items, limits, **options)
    assert {index: text.tokens.tolist() for index, text in written.items()} == by_the_engine(target, items, limits)
    return written


def test_greedy_texts_are_those_of_plain_decoding(target):
    check_equal(target, items_of(23, vocab=VOCAB, longest=24, temperatures=(0.0,)))


def test_drawn_texts_are_those_of_plain_decoding_with_the_same_seed(target):
    written = check_equal(target, items_of(23, vocab=VOCAB, longest=24, temperatures=(0.5, 1.0, 1.7)))
    assert len({tuple(text.tokens) for text in written.values()}) > 15


def test_a_hybrid_target_keeps_each_texts_own_state():
    items = [*items_of(23, vocab=VOCAB, longest=24), *(item(23 + word, (word,)) for word in range(9))]
    check_equal(tiny_target(VOCAB, **HYBRID), items)


def test_a_target_with_windows_reads_no_further_than_them():
    check_equal(tiny_target(VOCAB, **WINDOWED), items_of(9, vocab=VOCAB, longest=24))


@pytest.mark.parametrize("options", [{"num_hidden_layers": 2}, WINDOWED, HYBRID])
def test_rows_that_are_read_by_their_own_lengths_give_the_same_texts(monkeypatch, options):
    monkeypatch.setattr(writing, "can_run", lambda _device: True)
    monkeypatch.setattr(ragged, "mix_ragged", ragged.mix_plainly)
    check_equal(tiny_target(VOCAB, **options), items_of(9, vocab=VOCAB, longest=24))


def test_long_texts_read_the_cache_in_spans():
    limits = Limits(max_len=300, max_tokens=180, stop_ids=frozenset())
    options = {"max_position_embeddings": 512}
    check_equal(tiny_target(VOCAB, **options), items_of(5, vocab=VOCAB, longest=120), limits, batch=3)


def test_a_text_depends_neither_on_its_neighbours_nor_on_its_slot(target):
    items = items_of(17, vocab=VOCAB, longest=24)
    together = write(target, items, LIMITS, batch=5)
    for one in items:
        alone = write(target, [one], LIMITS, batch=2)
        assert alone[one.index].tokens.tolist() == together[one.index].tokens.tolist()


def test_each_text_comes_once_however_slots_are_filled(target):
    items = items_of(50, vocab=VOCAB, longest=20)
    writer = Writer(target, batch=6, limits=LIMITS)
    assert sorted(text.item.index for text in writer.write(iter(items))) == list(range(50))


def test_an_ended_text_holds_its_stop_token_and_a_full_one_is_as_long_as_may_be(target):
    written = write(target, items_of(30, vocab=VOCAB, longest=20), LIMITS)
    ended = [text for text in written.values() if text.ended]
    full = [text for text in written.values() if not text.ended]
    assert ended
    assert full
    assert all(text.tokens[-1] in LIMITS.stop_ids for text in ended)
    assert all(not LIMITS.stop_ids & set(text.tokens[:-1].tolist()) for text in written.values())
    assert all(len(text.tokens) == LIMITS.max_tokens for text in full)


def test_prompts_are_read_in_several_passes_where_they_are_too_many_for_one(target, monkeypatch):
    monkeypatch.setattr(writing, "READ_TOKENS", 40)
    check_equal(target, items_of(12, vocab=VOCAB, longest=24), batch=7)


def test_prompts_are_taken_only_as_far_as_they_are_needed(target):
    taken = []

    def endless():
        for one in items_of(10_000, vocab=VOCAB, longest=8):
            taken.append(one.index)
            yield one

    writer = Writer(target, batch=4, limits=LIMITS)
    assert len(list(islice(writer.write(endless()), 6))) == 6
    assert len(taken) < 60


def test_no_items_are_no_texts(target):
    assert write(target, [], LIMITS) == {}


def test_a_longer_text_than_the_context_is_refused(target):
    with pytest.raises(UsageError, match="the model's context holds 256 tokens"):
        Writer(target, batch=2, limits=Limits(max_len=257, max_tokens=8, stop_ids=frozenset()))


def test_too_little_memory_says_how_much_is_wanted(target, monkeypatch):
    def refuse(**_options):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(target, "new_cache", refuse)
    with pytest.raises(UsageError, match=r"Keys and values of 1000 texts of 48 tokens take .* GB.*lower --batch"):
        Writer(target, batch=1000, limits=LIMITS)


def test_memory_that_runs_out_while_writing_is_said_too(target, monkeypatch):
    writer = Writer(target, batch=2, limits=LIMITS)

    def refuse(_hidden):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(target, "logits", refuse)
    with pytest.raises(UsageError, match="lower --batch or --max-len"):
        list(writer.write(iter([item(0, (1, 2))])))


def test_a_step_runs_with_the_smallest_span_that_holds_its_columns():
    seen = []
    steps = Steps(seen.append, [300, 128, 256], torch.device("cpu"))
    steps.record()
    for columns in (1, 128, 129, 300):
        steps.run(columns, times=2)
    assert seen == [128, 128, 128, 128, 256, 256, 300, 300]
