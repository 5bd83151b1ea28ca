"""Log-probabilities of tokens against a fresh pass over the finished text."""

from collections import Counter

import fakes
import pytest
import torch
from engine.running import engine_of, plain, tiny_target
from models.peers import SIZES, make_pair

from outrider.engine.interfaces import TargetOutput
from outrider.engine.logprobs import path_logprobs
from outrider.engine.params import SamplingParams
from outrider.engine.step import Outcome
from outrider.engine.tree import DraftTree
from outrider.engine.walk import whole

VOCAB = SIZES["vocab_size"]
PROMPT = (3, 5, 9)


@torch.inference_mode()
def fresh(theirs, text) -> torch.Tensor:
    return theirs(torch.tensor([text])).logits[0].log_softmax(-1)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.8, "seed": 4, "presence_penalty": 1.0}], ids=str)
def test_logprobs_are_those_of_the_text_whatever_was_drafted(settings):
    pair = make_pair("qwen3 windows")
    params = SamplingParams(max_tokens=15, logprobs=4, **settings)
    known = {PROMPT: plain(pair.ours, PROMPT, params)}
    engine = engine_of(pair.ours, fakes.Oracle(known, VOCAB, 3))
    engine.add(PROMPT, params)
    events = list(engine.run())
    assert [event.token for event in events] == known[PROMPT]
    assert {event.origin for event in events} == {"draft", "target"}
    laws = fresh(pair.theirs, [*PROMPT, *known[PROMPT]])[len(PROMPT) - 1 :]
    for law, event in zip(laws, events, strict=False):
        best = law.topk(4)
        assert event.logprob.chosen == pytest.approx(float(law[event.token]), abs=1e-3)
        assert [token for token, _ in event.logprob.top] == best.indices.tolist()
        assert [value for _, value in event.logprob.top] == pytest.approx(best.values.tolist(), abs=1e-3)


@pytest.mark.parametrize("wanted", [None, 0])
def test_none_and_zero_alternatives(wanted):
    engine = engine_of(tiny_target(11), fakes.RandomTree(11))
    engine.add((1,), SamplingParams(max_tokens=3, logprobs=wanted))
    for event in engine.run():
        assert event.logprob is None if wanted is None else event.logprob.top == ()


def test_more_alternatives_than_words_give_all_words():
    engine = engine_of(tiny_target(5), fakes.RandomTree(5))
    engine.add((1,), SamplingParams(max_tokens=2, logprobs=20))
    for event in engine.run():
        assert sorted(token for token, _ in event.logprob.top) == [0, 1, 2, 3, 4]


def test_the_device_is_asked_for_all_tokens_of_a_round_at_once(monkeypatch):
    asked = Counter()

    def counted(name):
        true = getattr(torch.Tensor, name)
        return lambda tensor, *args: asked.update([name]) or true(tensor, *args)

    for name in ("tolist", "item", "__float__", "__int__", "__bool__"):
        monkeypatch.setattr(torch.Tensor, name, counted(name))
    tree = DraftTree.chain(torch.arange(6)[None])
    outcome = Outcome(tree, TargetOutput(torch.zeros(1, 6, 2), {}), whole(tree), torch.randn(1, 6, 11))
    for tokens in ((1,), (1, 2, 3, 4, 5, 7)):
        asked.clear()
        assert len(path_logprobs(outcome, 0, tokens, 4)) == len(tokens)
        assert sum(asked.values()) <= 3
