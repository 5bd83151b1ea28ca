"""The draft tree as tensors, against its definition node by node."""

import pytest
import torch
from hypothesis import given
from strategies import batches, proposals

from outrider.engine.tree import DraftTree, Proposal
from outrider.errors import VerificationError

CPU = torch.device("cpu")
LAW = torch.full((2, 4), 0.25)


def ancestors_or_self(parents: tuple[int, ...], node: int) -> list[int]:
    path = [node]
    while path[-1] != 0:
        path.append(parents[path[-1] - 1])
    return path[::-1]


@given(batches())
def test_a_node_sees_its_ancestors_and_itself_and_its_depth_is_their_number(batch):
    anchors, trees = batch
    tree = DraftTree.of(anchors, trees, CPU)
    for row, proposal in enumerate(trees):
        for node in range(1 + len(proposal.tokens)):
            path = ancestors_or_self(proposal.parents, node)
            assert tree.visible_BNN[row, node].nonzero()[:, 0].tolist() == sorted(path)
            assert int(tree.depths_BN[row, node]) == len(path) - 1


@given(batches())
def test_real_nodes_are_the_proposal_and_the_rest_is_padding_under_the_root(batch):
    anchors, trees = batch
    tree = DraftTree.of(anchors, trees, CPU)
    assert tree.width == 1 + max(len(proposal.tokens) for proposal in trees)
    for row, proposal in enumerate(trees):
        real = 1 + len(proposal.tokens)
        assert tree.tokens_BN[row, :real].tolist() == [anchors[row], *proposal.tokens]
        assert tree.parents_BN[row, :real].tolist() == [0, *proposal.parents]
        assert int(tree.counts_B[row]) == real
        for node in range(real, tree.width):
            assert int(tree.parents_BN[row, node]) == 0
            assert int(tree.depths_BN[row, node]) == 1
            assert tree.visible_BNN[row, node].nonzero()[:, 0].tolist() == [0, node]


@given(batches())
def test_a_batch_is_a_chain_only_if_every_row_is(batch):
    anchors, trees = batch
    chains = [p.parents == tuple(range(len(p.parents))) for p in trees]
    assert DraftTree.of(anchors, trees, CPU).is_chain == all(chains)


@given(proposals())
def test_a_chain_made_of_tokens_equals_the_same_chain_as_a_proposal(proposal):
    row = [3, *proposal.tokens]
    made = DraftTree.chain(torch.tensor([row]))
    proposed = DraftTree.of([3], [Proposal.chain(proposal.tokens)], CPU)
    for name in ("tokens_BN", "parents_BN", "depths_BN", "visible_BNN", "counts_B"):
        assert torch.equal(getattr(made, name), getattr(proposed, name)), name
    assert made.is_chain
    assert proposed.is_chain


@pytest.mark.parametrize(
    ("proposal", "words"),
    [
        (Proposal((1, 2), (0, 2)), "parent 2"),
        (Proposal((1, 2), (2, 0)), "parent 2"),
        (Proposal((1,), (-1,)), "parent -1"),
        (Proposal((1, 1), (0, 0)), "same token"),
        (Proposal((1, 2, 3, 3), (0, 1, 1, 1)), "same token"),
        (Proposal((1, 2), (0,)), "2 tokens and 1 parents"),
        (Proposal((1, 2), (0, 1), reach=(0.5,)), "1 estimates"),
        (Proposal((1, 2), (0, 0), LAW), "only chains"),
        (Proposal.chain((1,), LAW), r"\(2, 4\)"),
        (Proposal.chain((1, 2), LAW[0]), r"\(4,\)"),
    ],
)
def test_what_cannot_be_verified_losslessly_is_refused(proposal, words):
    with pytest.raises(VerificationError, match=words) as caught:
        DraftTree.of([0], [proposal], CPU)
    assert "\n" not in str(caught.value)


def test_a_batch_of_drawn_and_chosen_tokens_says_which_rows_were_drawn():
    law = torch.tensor([[0.5, 0.5, 0.0]])
    tree = DraftTree.of([0, 0, 0], [Proposal.chain([1]), Proposal.chain([1], law), Proposal()], CPU)
    assert tree.drawn == {1}
    assert tree.draft_probs_BKV.tolist() == [[[0, 0, 0]], law.tolist(), [[0, 0, 0]]]


def test_an_empty_proposal_may_stand_beside_drawn_tokens_with_and_without_a_law():
    empty = Proposal.chain((), LAW[:0])
    tree = DraftTree.of([0, 0, 0], [Proposal.chain((1, 2), LAW), Proposal(), empty], CPU)
    assert tree.draft_probs_BKV is not None
    assert tree.draft_probs_BKV.shape == (3, 2, 4)
    assert not tree.draft_probs_BKV[1:].any()


@pytest.mark.parametrize(
    "law",
    [[[0.5, 0.4]], [[1.5, -0.5]], [[float("nan"), 1.0]]],
    ids=["sums to 0.9", "negative", "nan"],
)
def test_a_draft_distribution_that_is_no_law_is_refused(law):
    with pytest.raises(VerificationError, match="no law"):
        Proposal.chain([0], torch.tensor(law)).check()


def test_the_depth_of_a_proposal_is_that_of_its_deepest_node():
    assert Proposal().depth == 0
    assert Proposal((1, 2, 3, 4), (0, 0, 1, 3)).depth == 3
