"""What is committed equals what a fresh pass over the finished text leaves: keys, values, states, taps."""

import fakes
import pytest
import torch
from engine.running import drafter_of, engine_of, finish, plain
from models.peers import SIZES, make_pair

from outrider.engine import engine as engine_module
from outrider.engine.cache import Cache
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.engine.tree import DraftTree
from outrider.engine.walk import whole
from outrider.registry import DRAFTERS

VOCAB = SIZES["vocab_size"]
PROMPTS = ((3, 5, 9, 1, 1, 1, 4), (5,), (11, 12) * 6)
PARAMS = SamplingParams(max_tokens=20)
TOLERANCE = 1e-4


@pytest.fixture(scope="module", params=["llama", "qwen2 yarn rope", "qwen3 windows", "qwen3_5"])
def target(request):
    return make_pair(request.param).ours


@torch.inference_mode()
def fresh(target, text, taps=()):
    cache = target.new_cache(slots=1, max_len=len(text))
    tree = DraftTree.chain(torch.tensor([text]))
    rows = slice(0, 1)
    out = target.forward(tree, cache, rows, torch.tensor([0]), span=len(text), taps=taps)
    cache.commit(rows, torch.tensor([0]), whole(tree).path_BN, tree.counts_B, in_place=True)
    return cache, out


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert found.shape == wanted.shape
    assert float((found - wanted).abs().max()) <= TOLERANCE * float(wanted.abs().max())


def drafters(target, known):
    return [
        *(drafter_of(name, target, slots=3) for name in DRAFTERS),
        fakes.RandomTree(VOCAB, 1),
        *(fakes.Oracle(known, VOCAB, seed) for seed in range(3)),
    ]


def watched_cache(target, engine_options) -> tuple[Engine, Cache]:
    """An engine, and the cache that it asked the target for."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        new_cache = target.new_cache
        patch.setattr(target, "new_cache", lambda **sizes: made.append(new_cache(**sizes)) or made[0])
        engine = engine_of(target, **engine_options)
    return engine, made[0]


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


def check_slot(target, cache: Cache, sequence: Sequence) -> None:
    done = sequence.committed
    if not done:
        return
    wanted, _ = fresh(target, [*sequence.prompt, *sequence.output][:done])
    rows = slice(sequence.slot, sequence.slot + 1)
    for layer in cache.layers:
        found = cache.read(layer, rows, slice(done))
        for ours, theirs in zip(found, wanted.read(layer, slice(1), slice(done)), strict=True):
            close(ours, theirs)
    # The round that ends a text may have kept a path beyond its end: rows do not mind, a state does.
    for layer in target.config.delta_layers if sequence.finish_reason is None else ():
        for ours, theirs in zip(cache.states.read(layer, rows), wanted.states.read(layer, slice(1)), strict=True):
            close(ours, theirs)


def test_a_drafter_is_shown_the_state_of_every_committed_position_once(target, monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 4)
    recorder = fakes.Recorder(VOCAB, 3)
    sequences = finish(engine_of(target, recorder, slots=2), [(prompt, PARAMS) for prompt in PROMPTS])
    for sequence in sequences:
        text = [*sequence.prompt, *sequence.output]
        _, out = fresh(target, text[:-1], recorder.taps)
        wanted = torch.cat([out.hidden_BNH, *(out.taps[tap] for tap in recorder.taps)], -1)[0]
        close(recorder.finished[tuple(text)][: len(wanted)], wanted)
