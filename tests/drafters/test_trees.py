"""Both builders against the enumeration of every path, ties included, and against each other."""

import time
from math import exp, inf
from statistics import median

import numpy as np
import pytest
import torch
from drafters.tree_cases import enumerated, paths_of, random_slots, slots, tokens_of
from hypothesis import given
from hypothesis import strategies as st

from outrider.drafters.trees.candidates import Alone, Candidates
from outrider.drafters.trees.frontier import Grown, grow
from outrider.drafters.trees.heap import best_first
from outrider.drafters.trees.nodes import Nodes
from outrider.engine.tree import Proposal

BUDGETS = st.integers(1, 30)
SLOW = 5  # a shared machine of continuous integration may be so much slower than the one that was measured


def grow_alone(batch: list[list[list[float]]], budget: int, **options) -> Grown:
    log_probs = torch.tensor(batch, dtype=torch.float64)
    tokens = torch.tensor([tokens_of(row) for row in batch])
    nothing = torch.zeros(log_probs.shape[:2], dtype=torch.float64)
    found = Candidates(tokens, tokens, log_probs, nothing)
    anchors = torch.zeros(len(batch), dtype=torch.int64)
    return grow(Alone(found), anchors, depth=log_probs.shape[1], budget=budget, **options)


@given(slots(), BUDGETS, st.booleans())
def test_the_heap_takes_the_first_paths_of_all_by_the_rule(case, budget, spine):
    nodes = best_first(tokens_of(case), case, budget, spine=spine)
    wanted = enumerated(case, budget, spine=spine)
    assert dict(zip(paths_of(nodes), nodes.log_reach, strict=True)) == wanted
    assert paths_of(nodes) == list(wanted)


@given(slots(), BUDGETS, st.booleans())
def test_the_frontier_takes_the_first_paths_of_all_by_the_rule(case, budget, spine):
    (nodes,) = grow_alone([case], budget, spine=spine).on_host()
    assert nodes == best_first(tokens_of(case), case, budget, spine=spine)
    assert paths_of(nodes) == list(enumerated(case, budget, spine=spine))


@pytest.mark.parametrize("seed", range(100))
def test_the_frontier_equals_the_heap_node_for_node_in_a_batch(seed):
    generator = np.random.default_rng(seed)
    depth, words, budget = (int(generator.integers(1, most)) for most in (16, 9, 65))
    batch = [random_slots(generator, depth, words) for _ in range(3)]
    limits = generator.integers(0, depth + 1, size=3)
    spine = bool(seed % 2)
    grown = grow_alone(batch, budget, limits_B=torch.from_numpy(limits), spine=spine)
    assert grown.tokens_BN.shape == grown.parents_BN.shape == grown.log_reach_BN.shape == (3, budget)
    for row, limit, nodes in zip(batch, limits, grown.on_host(), strict=True):
        assert nodes == best_first(tokens_of(row)[:limit], row[:limit], budget, spine=spine)


def test_what_is_no_node_stands_behind_all_nodes_under_the_root():
    grown = grow_alone([[[-0.5, -1.0]], [[-0.5, -inf]]], 5)
    assert (grown.log_reach_BN > -inf).tolist() == [[True, True, False, False, False], [True] + [False] * 4]
    assert not grown.parents_BN[grown.log_reach_BN == -inf].any()


@given(slots(), BUDGETS, BUDGETS, st.booleans())
def test_a_smaller_tree_is_the_beginning_of_a_larger_one(case, small, more, spine):
    first = best_first(tokens_of(case), case, small, spine=spine)
    whole = best_first(tokens_of(case), case, small + more, spine=spine)
    assert whole.tokens[: len(first)] == first.tokens
    assert whole.parents[: len(first)] == first.parents


@given(slots(), BUDGETS, st.booleans())
def test_parents_come_before_children_and_siblings_differ(case, budget, spine):
    nodes = best_first(tokens_of(case), case, budget, spine=spine)
    Proposal(tuple(nodes.tokens), tuple(nodes.parents)).check()


@pytest.mark.parametrize("budget", [1, 3, 6, 9, 20])
def test_a_seeded_spine_is_the_chain_of_best_words_before_all_else(budget):
    flat = [[-1.3, -1.4, -1.5]] * 6
    nodes = best_first(tokens_of(flat), flat, budget, spine=True)
    length = min(budget, 6)
    assert paths_of(nodes)[:length] == [(0,) * depth for depth in range(1, length + 1)]
    rest = nodes.log_reach[length:]
    assert rest == sorted(rest, reverse=True)
    assert max(map(len, paths_of(best_first(tokens_of(flat), flat, 6)))) < 6, "unseeded, this law branches first"


def test_of_equally_likely_paths_the_shorter_and_then_the_better_ranked_comes_first():
    certain = [[0.0, -1.0], [0.0, -1.0], [0.0, -1.0]]
    assert paths_of(best_first(tokens_of(certain), certain, 8)) == [
        (0,),
        (0, 0),
        (0, 0, 0),
        (1,),
        (0, 1),
        (1, 0),
        (0, 0, 1),
        (0, 1, 0),
    ]


class AfterWords:
    """A law that depends on the two words before; the first of them reaches it as the state of the path."""

    def __init__(self, rows: int, depth: int, words: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(rows, depth, words + 1, words + 1, words, generator=generator)
        self.log_probs = logits.double().log_softmax(-1)

    def start(self) -> torch.Tensor:
        return torch.zeros(len(self.log_probs), 1, 1, dtype=torch.int64)

    def at(self, slot, previous_BW, state):
        rows = torch.arange(len(previous_BW))[:, None]
        law = self.log_probs[rows, slot, state[..., 0], previous_BW]
        values, words = law.sort(dim=-1, descending=True, stable=True)
        return words + 1, values, previous_BW[..., None]

    def reach(self, row: int, words: tuple[int, ...]) -> float:
        triples = enumerate(zip((0, 0, *words), (0, *words), words, strict=False))
        return float(sum(self.log_probs[row, slot, *before, word - 1] for slot, (*before, word) in triples))


def words_of(nodes: Nodes) -> list[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = [()]
    for token, parent in zip(nodes.tokens, nodes.parents, strict=True):
        paths.append((*paths[parent], token))
    return paths[1:]


@pytest.mark.parametrize("budget", [1, 4, 11, 39])
@pytest.mark.parametrize("seed", range(5))
def test_paths_scored_by_their_own_words_make_the_most_probable_tree(seed, budget):
    law = AfterWords(2, depth=3, words=3, seed=seed)
    grown = grow(law, torch.zeros(2, dtype=torch.int64), depth=3, budget=budget).on_host()
    for row, nodes in enumerate(grown):
        every = [p for d in (1, 2, 3) for p in np.ndindex(*(3,) * d)]
        best = sorted((law.reach(row, tuple(word + 1 for word in path)) for path in every), reverse=True)
        assert nodes.log_reach == pytest.approx(best[:budget])
        assert nodes.log_reach == pytest.approx([law.reach(row, words) for words in words_of(nodes)])
        Proposal(tuple(nodes.tokens), tuple(nodes.parents)).check()


@pytest.mark.parametrize("seed", range(5))
def test_a_spine_of_path_scores_follows_the_best_word_after_each(seed):
    law = AfterWords(1, depth=4, words=3, seed=seed)
    (nodes,) = grow(law, torch.zeros(1, dtype=torch.int64), depth=4, budget=9, spine=True).on_host()
    chain = [0, 0]
    for slot in range(4):
        chain.append(1 + int(law.log_probs[0, slot, *chain[-2:]].argmax()))
    assert nodes.tokens[:4] == chain[2:]
    assert nodes.parents[:4] == [0, 1, 2, 3]


def test_conditionals_and_the_spine_are_read_from_the_order_of_nodes():
    nodes = best_first([[10, 11], [20, 21]], [[-0.5, -1.0], [-0.1, -3.0]], 6)
    assert nodes.tokens == [10, 20, 11, 20, 21, 21]
    assert nodes.parents == [0, 1, 0, 3, 1, 3]
    assert nodes.conditionals() == pytest.approx([exp(v) for v in (-0.5, -0.1, -1.0, -0.1, -3.0, -3.0)])
    assert nodes.beside_spine() == [False, False, False, True, False, True]


def test_no_slots_give_no_nodes():
    assert best_first([], [], 8) == Nodes()


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
def test_a_tree_of_64_nodes_is_built_in_half_a_millisecond(sharpness):
    generator = np.random.default_rng(0)
    logits = -np.sort(-sharpness * generator.normal(size=(15, 200)))
    case = (logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))[:, :8].tolist()
    words, seconds = tokens_of(case), []
    for _ in range(30):
        begun = time.perf_counter()
        assert len(best_first(words, case, 64)) == 64
        seconds.append(time.perf_counter() - begun)
    assert median(seconds) < SLOW * 0.5e-3
