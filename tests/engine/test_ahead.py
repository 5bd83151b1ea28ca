"""Rounds that the host reads late change no text: endings, slots used again, prompts in chunks, other requests."""

import pytest
import torch
from engine.running import CPU, TARGETS, drafter_of, finish, plain, tiny_target

from outrider.engine import engine as engine_module
from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams

PROMPTS = [(3, 5, 9, 1, 1, 1, 4), (5,), (11, 12) * 6, (7, 0, 2), (1, 2, 3, 4, 5, 6, 7, 8, 9) * 3, (2, 2)]
LIMITS = [18, 1, 7, 2, 12, 30]
DEVICES = [CPU, pytest.param(torch.device("cuda"), marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA GPU"))]  # fmt: skip
METHODS = {
    "none": {},
    "mtp": {"tokens": 3},
    "mtp adaptive": {},
    "dflash": {"tokens": 3},
    "ddtree": {"budget": 7},
    "ngram": {},
}


def engine_on(device, name, *, slots=3, max_len=64):
    target = tiny_target(13, device=device, **TARGETS["qwen3_5"])
    drafter = drafter_of(name.split()[0], target, slots=slots, max_len=max_len, sampled=False, **METHODS[name])
    costs = Costs(learn=False)
    return Engine(target, drafter, slots=slots, max_len=max_len, device=device, costs=costs, on_device=True)


@pytest.fixture(scope="module")
def wanted():
    target = tiny_target(13, **TARGETS["qwen3_5"])
    return [
        plain(target, prompt, SamplingParams(max_tokens=limit)) for prompt, limit in zip(PROMPTS, LIMITS, strict=True)
    ]


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_texts_and_rounds_are_those_of_plain_decoding(device, name, wanted, monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 5)
    engine = engine_on(device, name)
    requests = [(prompt, SamplingParams(max_tokens=limit)) for prompt, limit in zip(PROMPTS, LIMITS, strict=True)]
    found = finish(engine, requests)
    assert [sequence.output for sequence in found] == wanted
    for sequence in found:
        brought = sum(1 + kept.accepted for kept in sequence.rounds)
        assert len(sequence.output) <= brought <= len(sequence.output) + 1
    assert (engine._ahead is None) == (name == "ngram")
    again = finish(engine, requests[:2])
    assert [sequence.output for sequence in again] == wanted[:2]


@pytest.mark.parametrize("name", ["mtp", "ddtree"])
def test_sampled_requests_come_between(name, wanted):
    engine = engine_on(CPU, name)
    drawn = SamplingParams(max_tokens=9, temperature=0.8, seed=5)
    greedy = [SamplingParams(max_tokens=limit) for limit in (18, 30)]
    requests = [(PROMPTS[0], greedy[0]), (PROMPTS[2], drawn), (PROMPTS[5], greedy[1])]
    found = finish(engine, requests)
    assert found[0].output == wanted[0]
    assert found[2].output == wanted[5]
    alone = finish(engine_on(CPU, name), [(PROMPTS[2], drawn)])
    assert found[1].output == alone[0].output


def test_a_cancelled_sequence_says_no_more(wanted):
    engine = engine_on(CPU, "ddtree", slots=2)
    first, second = (engine.add(PROMPTS[i], SamplingParams(max_tokens=LIMITS[i])) for i in (5, 0))
    for _ in range(3):
        engine.step()
    engine.cancel(first)
    said = len(first.output)
    third = engine.add(PROMPTS[2], SamplingParams(max_tokens=LIMITS[2]))
    for event in engine.run():
        assert event.sequence_id != first.id
    assert len(first.output) == said
    assert (second.output, third.output) == (wanted[0], wanted[2])


def test_a_stop_in_the_middle_of_a_path_ends_the_text(wanted):
    engine = engine_on(CPU, "ddtree")
    stop = wanted[0][4]
    (found,) = finish(engine, [(PROMPTS[0], SamplingParams(max_tokens=18))], stop_ids=frozenset({stop}))
    assert found.output == wanted[0][: wanted[0].index(stop) + 1]
    assert found.finish_reason == "stop"
