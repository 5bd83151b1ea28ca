"""Where a text ends: at the same token whatever was drafted, also in the middle of an accepted path."""

import fakes
import pytest
from engine.running import drafter_of, engine_of, finish, plain, tiny_target

from outrider.engine.params import SamplingParams

VOCAB = 31
TARGET = tiny_target(VOCAB, seed=2, num_hidden_layers=2)
PROMPT = (4, 9, 2)
LONG = SamplingParams(temperature=1.5, seed=6, max_tokens=30)  # hot, so that the text does not go in circles
TEXT = plain(TARGET, PROMPT, LONG)
FIRSTS = [i for i, token in enumerate(TEXT) if token not in TEXT[:i]]


class Whole(fakes.Oracle):
    """Proposes the six right tokens, as a chain, and no wrong one."""

    def guess(self, slot):
        return fakes.Proposal.chain(self.right(slot.slot)[:6])


def believed():
    """Fresh drafters whose drafts are accepted."""
    known = {PROMPT: TEXT}
    return [Whole(known, VOCAB), *(fakes.Oracle(known, VOCAB, seed) for seed in range(4))]


@pytest.mark.parametrize("last", FIRSTS[:14])
def test_a_stop_token_ends_the_text_inside_an_accepted_path(last):
    params = SamplingParams(temperature=1.5, seed=6, max_tokens=30, stop_token_ids=(TEXT[last],))
    for drafter in [drafter_of("none", TARGET), *believed()]:
        sequence = finish(engine_of(TARGET, drafter), [(PROMPT, params)])[0]
        assert sequence.output == TEXT[: last + 1]
        assert sequence.finish_reason == "stop"


def test_the_models_own_end_counts_unless_it_is_to_be_ignored():
    ends = frozenset({TEXT[FIRSTS[4]]})
    wanted = {False: TEXT[: FIRSTS[4] + 1], True: TEXT}
    for ignore, text in wanted.items():
        params = SamplingParams(temperature=1.5, seed=6, max_tokens=30, ignore_eos=ignore)
        for drafter in believed():
            sequence = finish(engine_of(TARGET, drafter), [(PROMPT, params)], stop_ids=ends)[0]
            assert sequence.output == text


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_a_watcher_sees_each_token_once_and_ends_the_text(length):
    for drafter in believed():
        seen: list[int] = []

        def watch(token: int, seen=seen) -> bool:
            seen.append(token)
            return len(seen) == length

        sequence = finish(engine_of(TARGET, drafter), [(PROMPT, LONG)], watch=watch)[0]
        assert sequence.output == seen == TEXT[:length]
        assert sequence.finish_reason == "stop"


@pytest.mark.parametrize("length", [1, 2, 3, 7, 29])
def test_max_tokens_is_exact(length):
    params = SamplingParams(temperature=1.5, seed=6, max_tokens=length)
    for drafter in believed():
        sequence = finish(engine_of(TARGET, drafter), [(PROMPT, params)])[0]
        assert sequence.output == TEXT[:length]
        assert sequence.finish_reason == "length"


def test_a_stop_token_at_the_last_place_is_a_stop():
    params = SamplingParams(temperature=1.5, seed=6, max_tokens=FIRSTS[3] + 1, stop_token_ids=(TEXT[FIRSTS[3]],))
    assert finish(engine_of(TARGET, believed()[0]), [(PROMPT, params)])[0].finish_reason == "stop"


def test_only_the_last_event_tells_how_a_text_ended():
    engine = engine_of(TARGET, believed()[0])
    engine.add(PROMPT, LONG)
    reasons = [event.finish_reason for event in engine.run()]
    assert reasons == [None] * 29 + ["length"]


def test_a_prompt_of_one_token_needs_no_reading():
    params = SamplingParams(max_tokens=5)
    wanted = plain(TARGET, (7,), params)
    sequence = finish(engine_of(TARGET, fakes.Flood(VOCAB)), [((7,), params)])[0]
    assert sequence.output == wanted


def test_drafts_beyond_the_end_of_a_text_do_not_count_as_accepted():
    params = SamplingParams(temperature=1.5, seed=6, max_tokens=30, stop_token_ids=(TEXT[2],))
    sequence = finish(engine_of(TARGET, Whole({PROMPT: TEXT}, VOCAB)), [(PROMPT, params)])[0]
    assert sum(r.accepted for r in sequence.rounds) <= len(sequence.output)
