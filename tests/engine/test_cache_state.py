"""What is committed equals what a fresh pass over the finished text leaves: keys, values, states, taps."""

import fakes
import pytest
import torch
from engine.running import drafter_of, engine_of, finish, plain
from engine.slots import check_slot, close, fresh, watched_cache
from models.peers import SIZES, make_pair

from outrider.engine import engine as engine_module
from outrider.engine.params import SamplingParams
from outrider.registry import DRAFTERS

VOCAB = SIZES["vocab_size"]
PROMPTS = ((3, 5, 9, 1, 1, 1, 4), (5,), (11, 12) * 6)
PARAMS = SamplingParams(max_tokens=20)


@pytest.fixture(scope="module", params=["llama", "qwen2 yarn rope", "qwen3 windows", "qwen3_5"])
def target(request):
    return make_pair(request.param).ours


def drafters(target, known):
    return [
        *(drafter_of(name, target, slots=3) for name in DRAFTERS),
        fakes.RandomTree(VOCAB, 1),
        *(fakes.Oracle(known, VOCAB, seed) for seed in range(3)),
    ]


def test_committed_keys_and_values_are_those_of_a_fresh_pass(target, monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 4)
    known = {prompt: plain(target, prompt, PARAMS) for prompt in PROMPTS}
    for drafter in drafters(target, known):
        options = {"drafter": drafter, "slots": 3, "costs": fakes.Free()}
        engine, cache = watched_cache(target, options)
        sequences = [engine.add(prompt, PARAMS) for prompt in PROMPTS]
        while engine.busy:
            before = [s for s in sequences if s.finish_reason is None]
            engine.step()
            for sequence in before:  # a slot is kept to the end of the step that ended its text
                check_slot(target, cache, sequence)
        assert all(sequence.committed == sequence.length - 1 for sequence in sequences)


def test_a_drafter_is_shown_the_state_of_every_committed_position_once(target, monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 4)
    recorder = fakes.Recorder(VOCAB, 3)
    sequences = finish(engine_of(target, recorder, slots=2), [(prompt, PARAMS) for prompt in PROMPTS])
    for sequence in sequences:
        text = [*sequence.prompt, *sequence.output]
        _, out = fresh(target, text[:-1], recorder.taps)
        wanted = torch.cat([out.hidden_BNH, *(out.taps[tap] for tap in recorder.taps)], -1)[0]
        close(recorder.finished[tuple(text)][: len(wanted)], wanted)
