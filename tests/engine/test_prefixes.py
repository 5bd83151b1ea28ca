"""Prompts that begin as a text in the cache: they are not read again, and their texts are those of a cold engine."""

import fakes
import pytest
from engine.running import TARGETS, drafter_of, engine_of, plain, tiny_target
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.drafters.none import NoDrafter
from outrider.engine import engine as engine_module
from outrider.engine.params import SamplingParams
from outrider.engine.prefixes import LEAST, Kept, common

VOCAB, MAX_LEN = 19, 120
TARGET = tiny_target(VOCAB, seed=3, num_hidden_layers=2)
STEM = tuple(i * 7 % VOCAB for i in range(40))
PARAMS = SamplingParams(max_tokens=10)


def run(engine, *prompts, params=PARAMS):
    sequences = [engine.add(prompt, params) for prompt in prompts]
    for _ in engine.run():
        pass
    return sequences


@pytest.mark.parametrize("name", ["none", "ngram", "dflash", "ddtree"])
def test_a_prompt_that_goes_on_from_an_ended_text_takes_it_over(name):
    engine = engine_of(TARGET, drafter_of(name, TARGET, slots=3, max_len=MAX_LEN), slots=3, max_len=MAX_LEN)
    (first,) = run(engine, STEM)
    longer = (*STEM, *first.output, 1, 2, 3)
    (second,) = run(engine, longer)
    assert second.reused == len(STEM) + len(first.output) - 1
    assert second.output == plain(TARGET, longer, PARAMS)


@pytest.mark.parametrize("name", ["none", "dflash"])
def test_choices_of_one_prompt_read_it_once(name):
    engine = engine_of(TARGET, drafter_of(name, TARGET, slots=4, max_len=MAX_LEN), slots=4, max_len=MAX_LEN)
    sequences = run(engine, STEM, STEM, STEM)
    assert [s.reused for s in sequences] == [0, len(STEM) - 1, len(STEM) - 1]
    assert [s.output for s in sequences] == [plain(TARGET, STEM, PARAMS)] * 3


def test_two_chats_in_turn_keep_both_their_texts():
    engine = engine_of(TARGET, NoDrafter(), slots=3, max_len=MAX_LEN)
    one, other = STEM, tuple(reversed(STEM))
    for turn in range(3):
        (a,) = run(engine, one)
        (b,) = run(engine, other)
        assert (a.reused > 0) == (b.reused > 0) == (turn > 0)
        assert a.output == plain(TARGET, one, PARAMS)
        assert b.output == plain(TARGET, other, PARAMS)
        one, other = (*one, *a.output, 5), (*other, *b.output, 6)


@pytest.mark.parametrize(("family", "drafter"), [("qwen3_5", NoDrafter()), ("llama", fakes.RandomTree(VOCAB))])
def test_nothing_is_taken_over_where_a_state_or_a_drafter_does_not_allow_it(family, drafter):
    target = tiny_target(VOCAB, seed=3, **{"num_hidden_layers": 2, **TARGETS[family]})
    engine = engine_of(target, drafter, slots=2, max_len=MAX_LEN)
    for _ in range(2):
        (sequence,) = run(engine, STEM)
        assert sequence.reused == 0
        assert sequence.output == plain(target, STEM, PARAMS)


TAILS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, VOCAB - 1), st.integers(0, 3)), min_size=2, max_size=7)


@settings(max_examples=12)
@given(tails=TAILS)
def test_whoever_comes_and_goes_each_has_the_text_of_a_cold_engine(tails):
    engine = engine_of(TARGET, drafter_of("dflash", TARGET, slots=3, max_len=MAX_LEN), slots=3, max_len=MAX_LEN)
    sequences = []
    for length, token, steps in tails:
        prompt = (*STEM[:length], token, 1)
        sequences.append(engine.add(prompt, PARAMS))
        for _ in range(steps):
            engine.step()
        if steps == 3 and token % 3 == 0:
            engine.cancel(sequences.pop())
    for _ in engine.run():
        pass
    assert [s.output for s in sequences] == [plain(TARGET, s.prompt, PARAMS) for s in sequences]


def test_prompts_are_read_in_turn_and_a_short_one_waits_for_one_part_of_a_long_one(monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 8)
    engine = engine_of(TARGET, NoDrafter(), slots=3, max_len=MAX_LEN)
    long = engine.add(tuple(range(19)) * 4, PARAMS)
    engine.step()
    short = engine.add((3, 1, 2), PARAMS)
    engine.step()
    assert (long.committed, short.prefilled) == (16, False)
    engine.step()
    assert long.committed == 16 + 6
    assert short.prefilled
    assert len(short.output) == 1


def test_beside_decoding_prompts_are_read_in_smaller_parts(monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 16)
    monkeypatch.setattr(engine_module, "BESIDE", 4)
    engine = engine_of(TARGET, NoDrafter(), slots=2, max_len=MAX_LEN)
    first = engine.add((1,), PARAMS)
    engine.step()
    second = engine.add(tuple(range(19)), PARAMS)
    engine.step()
    assert (second.committed, len(first.output)) == (4, 2)


def test_the_deepest_guess_can_be_bounded_for_one_sequence():
    engine = engine_of(TARGET, fakes.Flood(VOCAB), slots=2, max_len=MAX_LEN)
    seen = []
    engine.drafter.guess, guess = (
        lambda slot: (seen.append((slot.slot, slot.max_depth)), guess(slot))[1],
        engine.drafter.guess,
    )
    engine.add(STEM, PARAMS, draft_depth=0)
    engine.add(STEM, PARAMS, draft_depth=2)
    engine.step()
    assert seen == [(0, 0), (1, 2)]


def test_the_last_token_of_a_prompt_is_never_taken_over():
    assert common((1, 2, 3), (1, 2, 3)) == 2
    assert common((1, 2, 3), (1, 9, 3)) == 1
    kept = Kept()
    kept.keep(1, STEM)
    assert kept.longest(STEM) == (1, len(STEM) - 1)
    assert kept.longest(STEM[: LEAST - 1]) == (-1, 0)
    assert kept.place_for([0, 1]) == 0
    assert kept.place_for([1]) == 1
    assert kept.place_for([]) is None
