"""Rounds that stay on the device give the texts of plain decoding, whatever proposes."""

import pytest
import torch
from engine.device_rounds import texts
from engine.running import TARGETS, plain, tiny_heads, tiny_network, tiny_target

from outrider.engine.params import SamplingParams
from outrider.models.dflash.config import Markov, Selector

PROMPTS = ((3, 5, 9, 1, 1, 1, 4), (5, 2), (11, 12) * 6)
TOKENS = 18
METHODS = ["plain", "mtp:3", "mtp:1", "dflash", "ddtree:3", "ddtree:11"]


def wanted(target):
    return [plain(target, prompt, SamplingParams(max_tokens=TOKENS)) for prompt in PROMPTS]


@pytest.fixture(scope="module", params=TARGETS)
def target(request):
    return tiny_target(13, **TARGETS[request.param])


@pytest.mark.parametrize("method", METHODS)
def test_texts_are_those_of_plain_decoding(target, method):
    if method.startswith("mtp") and target.config.delta is None:
        pytest.skip("only this family has heads")
    heads = tiny_heads(target) if target.config.delta else None
    found = texts(target, method, PROMPTS, TOKENS, network=tiny_network(target), heads=heads)
    assert found == wanted(target)


def test_a_single_row():
    target = tiny_target(13, **TARGETS["qwen3_5"])
    found = texts(target, "ddtree:6", PROMPTS[:1], TOKENS, network=tiny_network(target), first=0)
    assert found == wanted(target)[:1]


@pytest.mark.parametrize("method", ["dflash", "ddtree:9"])
@pytest.mark.parametrize(
    "head", [{"kind": "dflash2", "selector": Selector(4, 3)}, {"kind": "dspark", "markov": Markov(4, "rnn")}]
)
def test_heads_that_score_by_path(method, head):
    target = tiny_target(13)
    assert texts(target, method, PROMPTS, TOKENS, network=tiny_network(target, **head)) == wanted(target)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


@needs_gpu
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_graphs_give_the_texts_of_the_cpu(method, late):
    here = tiny_target(13, **TARGETS["qwen3_5"])
    there = tiny_target(13, device=torch.device("cuda"), **TARGETS["qwen3_5"])
    network, heads = tiny_network(there), tiny_heads(there)
    found = texts(there, method, PROMPTS, TOKENS, network=network, heads=heads, late=late)
    if late:  # a row ends one round late, which changes none of its own tokens
        found = [text[:TOKENS] for text in found]
    assert found == wanted(here)
