"""The walk on tensors against one that goes node by node."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import batches

from outrider.engine.params import SamplingParams
from outrider.engine.rules import Rules
from outrider.engine.tree import DraftTree, Proposal
from outrider.engine.verify import verify
from outrider.engine.walk import follow, whole

CPU = torch.device("cpu")
VOCAB = 3  # few words: most walks go somewhere


def walk_slowly(proposal: Proposal, decisions: list[int]) -> tuple[list[int], int]:
    path = [0]
    while True:
        children = [
            node
            for node, (token, parent) in enumerate(zip(proposal.tokens, proposal.parents, strict=True), start=1)
            if parent == path[-1] and token == decisions[path[-1]]
        ]
        if not children:
            return path, decisions[path[-1]]
        path += children


@st.composite
def decided(draw):
    anchors, trees = draw(batches(vocab=VOCAB, max_nodes=9))
    tree = DraftTree.of(anchors, trees, CPU)
    row = st.lists(st.integers(0, VOCAB - 1), min_size=tree.width, max_size=tree.width)
    return tree, trees, [draw(row) for _ in trees]


def check(walk, trees: list[Proposal], decisions: list[list[int]]) -> None:
    for row, proposal in enumerate(trees):
        path, bonus = walk_slowly(proposal, decisions[row])
        assert int(walk.accepted_B[row]) == len(path) - 1
        assert walk.path_BN[row, : len(path)].tolist() == path
        assert int(walk.bonus_B[row]) == bonus


@given(decided())
def test_a_walk_follows_the_child_that_was_decided_until_there_is_none(case):
    tree, trees, decisions = case
    check(follow(tree, torch.tensor(decisions)), trees, decisions)


@given(decided())
def test_a_path_names_every_node_once_so_that_a_commit_stays_in_its_rows(case):
    tree, _, decisions = case
    walk = follow(tree, torch.tensor(decisions))
    everything = torch.arange(tree.width).expand_as(walk.path_BN)
    assert torch.equal(walk.path_BN.sort(1).values, everything)


@given(decided())
def test_greedy_verification_walks_by_the_argmax(case):
    tree, trees, decisions = case
    logits = torch.nn.functional.one_hot(torch.tensor(decisions), VOCAB).float()
    rules = [Rules(SamplingParams(), VOCAB, CPU) for _ in trees]
    check(verify(tree, logits, rules, [1] * len(trees)), trees, decisions)


def test_padding_is_never_entered_even_where_its_token_is_decided():
    trees = [Proposal.chain((1, 2)), Proposal()]
    tree = DraftTree.of([0, 0], trees, CPU)
    walk = follow(tree, torch.zeros(2, 3, dtype=torch.int64))  # 0 is what padding holds
    assert walk.accepted_B.tolist() == [0, 0]
    assert walk.bonus_B.tolist() == [0, 0]


def test_a_chunk_of_a_prompt_is_kept_whole():
    walk = whole(DraftTree.chain(torch.tensor([[4, 5, 6]])))
    assert walk.accepted_B.tolist() == [2]
    assert walk.path_BN.tolist() == [[0, 1, 2]]
