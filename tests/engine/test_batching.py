"""Many sequences in few slots: each gets the tokens it has alone, whoever comes, ends or is cancelled beside it."""

import fakes
import numpy as np
import pytest
from engine.running import TARGETS, engine_of, finish, plain, tiny_target
from engine.slots import check_slot, watched_cache
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine import engine as engine_module
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.errors import UsageError

VOCAB, MAX_LEN = 23, 48
MODELS = {family: tiny_target(VOCAB, seed=1, **{"num_hidden_layers": 2, **sizes}) for family, sizes in TARGETS.items()}
TARGET = MODELS["llama"]


def request(seed: int) -> tuple[tuple[int, ...], SamplingParams]:
    generator = np.random.default_rng(seed)
    prompt = tuple(generator.integers(0, VOCAB, int(generator.integers(1, 24))).tolist())
    kinds = [{}, {"temperature": 0.9, "seed": seed}, {"repetition_penalty": 1.4}]
    kind = kinds[int(generator.integers(3))]
    return prompt, SamplingParams(max_tokens=int(generator.integers(1, 20)), **kind)


REQUESTS = [request(seed) for seed in range(12)]
SAID = {family: [plain(target, prompt, params) for prompt, params in REQUESTS] for family, target in MODELS.items()}
ALONE = SAID["llama"]


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 5)


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("slots", [1, 2, 5, 20])
def test_more_requests_than_slots_are_all_served_with_their_own_text(slots, family):
    engine = engine_of(MODELS[family], fakes.RandomTree(VOCAB, slots), slots=slots, max_len=MAX_LEN)
    assert [s.output for s in finish(engine, REQUESTS)] == SAID[family]
    assert not engine.busy
    assert not engine.drafter.texts


def test_greedy_texts_are_their_own_beside_sampled_ones_where_drafts_are_drawn():
    chains = fakes.SampledChain(lambda text: np.full(VOCAB, 1 / VOCAB), 3)
    sequences = finish(engine_of(TARGET, chains, slots=4, max_len=MAX_LEN), REQUESTS)
    greedy = [s.params.greedy for s in sequences]
    assert 0 < sum(greedy) < len(greedy)
    for sequence, alone in zip(sequences, ALONE, strict=True):
        assert len(sequence.output) == sequence.params.max_tokens
        assert sequence.output == alone or not sequence.params.greedy


class Crowd:
    """Adds, cancels and steps as told; remembers what each sequence should say."""

    def __init__(self, engine: Engine, said: list[list[int]]) -> None:
        self.engine, self.said = engine, said
        self.wanted: list[tuple[Sequence, list[int]]] = []

    def add(self, number: int) -> None:
        prompt, params = REQUESTS[number]
        self.wanted.append((self.engine.add(prompt, params), self.said[number]))

    def cancel(self, number: int) -> None:
        if self.wanted:
            self.engine.cancel(self.wanted[number % len(self.wanted)][0])

    def step(self, _number: int) -> None:
        self.engine.step()
        self.check()

    def check(self) -> None:
        for sequence, wanted in self.wanted:
            assert sequence.output == wanted[: len(sequence.output)]
            if sequence.finish_reason == "length":
                assert sequence.output == wanted


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "step", "step", "step", "cancel"]), st.integers(0, 11)),
    min_size=5,
    max_size=40,
)


@settings(max_examples=30)
@given(ACTIONS, st.sampled_from(sorted(MODELS)), st.integers(1, 4), st.integers(0, 1000))
def test_coming_and_going_changes_nobodys_text(actions, family, slots, seed):
    drafter = fakes.RandomTree(VOCAB, seed)
    crowd = Crowd(engine_of(MODELS[family], drafter, slots=slots, max_len=MAX_LEN), SAID[family])
    for name, number in actions:
        getattr(crowd, name)(number)
    list(crowd.engine.run())
    crowd.check()
    assert {s.finish_reason for s, _ in crowd.wanted} <= {"length", "cancelled"}
    assert not drafter.texts


@given(ACTIONS, st.integers(1, 4), st.integers(0, 1000))
def test_coming_and_going_leaves_every_slot_the_state_of_its_own_text(actions, slots, seed):
    target = MODELS["qwen3_5"]
    options = {"drafter": fakes.RandomTree(VOCAB, seed), "slots": slots, "max_len": MAX_LEN}
    engine, cache = watched_cache(target, options)
    crowd = Crowd(engine, SAID["qwen3_5"])
    for name, number in [*actions, *[("step", 0)] * 12]:
        getattr(crowd, name)(number)
        for sequence in engine._scheduler._running.values():
            check_slot(target, cache, sequence)


LONG = (tuple(range(20)), SamplingParams(max_tokens=10))


@pytest.mark.parametrize("steps", [0, 1, 2, 4, 6])
def test_a_sequence_can_be_cancelled_waiting_reading_or_decoding(steps):
    engine = engine_of(TARGET, fakes.RandomTree(VOCAB), slots=2, max_len=MAX_LEN)
    first = engine.add(*LONG)
    others = [engine.add(*REQUESTS[number]) for number in range(3)]
    for _ in range(steps):
        engine.step()
    engine.cancel(first)
    engine.cancel(first)
    said = list(first.output)
    list(engine.run())
    assert first.finish_reason == "cancelled"
    assert first.output == said
    assert [s.output for s in others] == ALONE[:3]


def test_a_cancelled_sequence_that_waits_never_gets_a_slot():
    engine = engine_of(TARGET, fakes.RandomTree(VOCAB), slots=1, max_len=MAX_LEN)
    first, second = engine.add(*REQUESTS[0]), engine.add(*LONG)
    engine.step()
    engine.cancel(second)
    list(engine.run())
    assert (second.slot, second.output, second.rounds) == (-1, [], [])
    assert first.output == ALONE[0]


def test_cancelling_what_has_ended_changes_nothing():
    engine = engine_of(TARGET, fakes.RandomTree(VOCAB), slots=1, max_len=MAX_LEN)
    sequence = finish(engine, [REQUESTS[3]])[0]
    follower = engine.add(*REQUESTS[4])
    engine.step()
    engine.cancel(sequence)
    list(engine.run())
    assert sequence.finish_reason == "length"
    assert follower.output == ALONE[4]


def test_a_text_may_fill_the_cache_to_its_last_row():
    prompt, drafter = tuple(range(8)), fakes.Flood(VOCAB, 2)
    params = SamplingParams(max_tokens=MAX_LEN - 8)
    wanted = plain(TARGET, prompt, params)
    engine = engine_of(TARGET, drafter, slots=2, max_len=MAX_LEN)
    for sequence in finish(engine, [(prompt, params)] * 3):
        assert sequence.output == wanted
        assert sequence.length == MAX_LEN


@pytest.mark.parametrize(
    ("prompt", "settings", "words"),
    [
        ((), {}, "empty"),
        ((0,) * 40, {"max_tokens": 9}, "40 tokens"),
        ((1, VOCAB), {}, f"id {VOCAB} in prompt"),
        ((-1,), {}, "id -1 in prompt"),
        ((1,), {"logit_bias": {VOCAB: 1.0}}, f"id {VOCAB} in logit_bias"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_and_leaves_no_trace(prompt, settings, words):
    engine = engine_of(TARGET, fakes.RandomTree(VOCAB), max_len=MAX_LEN)
    with pytest.raises(UsageError, match=words):
        engine.add(prompt, SamplingParams(**{"max_tokens": 4, **settings}))
    assert not engine.busy
