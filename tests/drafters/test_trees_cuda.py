"""Trees on a GPU; skipped where there is none (continuous integration has none)."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from drafters.tree_cases import random_slots, tokens_of
from engine.running import drafter_of, tiny_network
from engine.test_cuda import RAW, target_on, texts

from outrider.drafters.ddtree import DDTreeDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.drafters.trees.candidates import AfterPath, Alone, Candidates
from outrider.drafters.trees.frontier import Grown, grow
from outrider.drafters.trees.heap import best_first
from outrider.engine.params import SamplingParams
from outrider.models.dflash.config import Markov, Selector

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

DEPTH, WORDS, BUDGET = 15, 8, 63
HEADS = {
    "dflash": {},
    "dflash2": {"kind": "dflash2", "selector": Selector(8, 12)},
    "dspark": {"kind": "dspark", "markov": Markov(8, "rnn")},
}


def grown(log_probs_BLK: torch.Tensor, tokens_BLK: torch.Tensor, *, spine: bool = False) -> Grown:
    found = Candidates(tokens_BLK, tokens_BLK, log_probs_BLK, torch.zeros_like(log_probs_BLK[..., 0]))
    return grow(Alone(found), tokens_BLK[:, 0, 0], depth=DEPTH, budget=BUDGET, spine=spine)


def case(seed: int) -> tuple[list[list[list[float]]], torch.Tensor, torch.Tensor]:
    generator = np.random.default_rng(seed)
    batch = [random_slots(generator, DEPTH, WORDS) for _ in range(4)]
    tokens = torch.tensor([tokens_of(row) for row in batch], device="cuda")
    return batch, torch.tensor(batch, dtype=torch.float64, device="cuda"), tokens


@pytest.mark.parametrize("seed", range(20))
def test_the_device_takes_the_nodes_of_the_heap_ties_included(seed):
    batch, log_probs_BLK, tokens_BLK = case(seed)
    spine = bool(seed % 2)
    for row, nodes in zip(batch, grown(log_probs_BLK, tokens_BLK, spine=spine).on_host(), strict=True):
        assert nodes == best_first(tokens_of(row), row, BUDGET, spine=spine)


def test_a_captured_tree_is_rebuilt_from_what_lies_in_its_inputs():
    _, log_probs_BLK, tokens_BLK = case(0)
    grown(log_probs_BLK, tokens_BLK)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = grown(log_probs_BLK, tokens_BLK)
    for seed in range(1, 6):
        batch, other_BLK, _ = case(seed)
        log_probs_BLK.copy_(other_BLK)
        graph.replay()
        wanted = [best_first(tokens_of(row), row, BUDGET) for row in batch]
        assert made.on_host() == wanted


@contextmanager
def no_questions():
    """Whatever waits for the device is an error in here."""
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_question_to_the_device_would_be_noticed():
    with pytest.raises(RuntimeError, match="synchronizing"), no_questions():
        torch.ones(1, device="cuda").item()


@pytest.mark.parametrize("head", ["dflash2", "dspark"])
def test_scores_by_path_ask_the_device_nothing(head):
    target = target_on("cuda")
    network = tiny_network(target, hidden_size=RAW["hidden_size"], **HEADS[head])
    depth = network.config.max_tokens
    hidden_BLH = torch.randn(2, depth, RAW["hidden_size"], device="cuda")
    logits_BLV, anchors_B = torch.randn(2, depth, RAW["vocab_size"], device="cuda"), torch.tensor([3, 4], device="cuda")
    with no_questions():
        found = Candidates.of(logits_BLV, 12, network.words)
        made = grow(AfterPath(network.correction, hidden_BLH, found), anchors_B, depth=depth, budget=BUDGET)
    assert [len(nodes) for nodes in made.on_host()] == [BUDGET, BUDGET]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "top_p": 0.9, "seed": 3}], ids=["greedy", "sampled"])
def test_trees_change_no_text_on_a_gpu(head, settings):
    target = target_on("cuda")
    network = tiny_network(target, hidden_size=RAW["hidden_size"], **HEADS[head])
    drafter = DDTreeDrafter.build(Setting(3, 128, network, DraftOptions(budget=15)))
    params = SamplingParams(max_tokens=40, **settings)
    assert texts(target, drafter, params) == texts(target, drafter_of("none", target), params)
