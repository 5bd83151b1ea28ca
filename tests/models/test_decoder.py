"""The decoder against Transformers: prefill, chain and tree, one row and a ragged batch of four."""

import numpy as np
import pytest
import torch
from models.peers import SIZES, VARIANTS, Pair, make_pair

from outrider.engine.tree import DraftTree, Proposal
from outrider.engine.walk import whole

CPU = torch.device("cpu")
TOLERANCE = 1e-4
#        root 1 2 3 4 5 6 7 8: three branches of different depth
PARENTS = (0, 0, 1, 1, 3, 2, 0, 7)


@pytest.fixture(scope="module", params=list(VARIANTS))
def pair(request):
    return make_pair(request.param)


def same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    scale = theirs.abs().max()
    assert float((ours - theirs).abs().max() / scale) <= TOLERANCE


def tokens(count: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, SIZES["vocab_size"], count).tolist()


@torch.inference_mode()
def theirs_along(pair: Pair, path: list[int]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    out = pair.theirs(torch.tensor([path]), output_hidden_states=True)
    return out.logits[0], [state[0] for state in out.hidden_states]


@torch.inference_mode()
def prefill(pair: Pair, cache, slot: int, prompt: list[int]):
    tree = DraftTree.chain(torch.tensor([prompt]))
    rows = slice(slot, slot + 1)
    out = pair.ours.forward(tree, cache, rows, torch.tensor([0]), span=len(prompt), taps=(0, 1, 2))
    keep(cache, rows, torch.tensor([0]), tree)
    return out


def keep(cache, rows: slice, lengths: torch.Tensor, tree: DraftTree) -> None:
    """Commit a chunk of a prompt."""
    cache.commit(rows, lengths, whole(tree).path_BN, tree.counts_B, in_place=True)


def test_prefill_gives_the_same_logits_and_taps(pair: Pair) -> None:
    prompt = tokens(23, seed=1)
    out = prefill(pair, pair.ours.new_cache(slots=1, max_len=32), 0, prompt)
    logits, states = theirs_along(pair, prompt)
    same(pair.ours.logits(out.hidden_BNH)[0], logits)
    same(out.hidden_BNH[0], states[-1])
    for tap in (0, 1, 2):
        same(out.taps[tap][0], states[tap + 1])


def test_prefill_in_chunks_gives_the_same_logits(pair: Pair) -> None:
    prompt = tokens(23, seed=2)
    cache = pair.ours.new_cache(slots=1, max_len=32)
    logits = []
    for start, end in ((0, 9), (9, 10), (10, 23)):
        tree = DraftTree.chain(torch.tensor([prompt[start:end]]))
        out = pair.ours.forward(tree, cache, slice(0, 1), torch.tensor([start]), span=end)
        keep(cache, slice(0, 1), torch.tensor([start]), tree)
        logits.append(pair.ours.logits(out.hidden_BNH)[0])
    same(torch.cat(logits), theirs_along(pair, prompt)[0])


def test_a_chain_gives_the_logits_of_its_text(pair: Pair) -> None:
    prompt, chain = tokens(14, seed=3), tokens(6, seed=4)
    cache = pair.ours.new_cache(slots=1, max_len=32)
    prefill(pair, cache, 0, prompt)
    tree = DraftTree.of([chain[0]], [Proposal.chain(chain[1:])], CPU)
    out = pair.ours.forward(tree, cache, slice(0, 1), torch.tensor([14]), span=20)
    same(pair.ours.logits(out.hidden_BNH)[0], theirs_along(pair, prompt + chain)[0][14:])


def check_tree(pair: Pair, prompt: list[int], tree: DraftTree, logits_NV: torch.Tensor, row: int) -> None:
    """Every node's logits are those of its own path, run afresh."""
    for node in range(int(tree.counts_B[row])):
        path = [j for j in range(tree.width) if tree.visible_BNN[row, node, j]]
        text = prompt + [int(tree.tokens_BN[row, j]) for j in path]
        same(logits_NV[node], theirs_along(pair, text)[0][-1])


def branching(seed: int, parents: tuple[int, ...] = PARENTS) -> Proposal:
    drawn = np.random.default_rng(seed).permutation(SIZES["vocab_size"])
    return Proposal(tuple(int(t) for t in drawn[: len(parents)]), parents)


def test_a_tree_gives_each_node_the_logits_of_its_path(pair: Pair) -> None:
    prompt = tokens(11, seed=5)
    cache = pair.ours.new_cache(slots=1, max_len=32)
    prefill(pair, cache, 0, prompt)
    tree = DraftTree.of([7], [branching(6)], CPU)
    out = pair.ours.forward(tree, cache, slice(0, 1), torch.tensor([11]), span=20)
    check_tree(pair, prompt, tree, pair.ours.logits(out.hidden_BNH)[0], 0)


def test_a_ragged_batch_of_four_gives_the_logits_of_each(pair: Pair) -> None:
    prompts = [tokens(count, seed=20 + count) for count in (3, 17, 8, 12)]
    cache = pair.ours.new_cache(slots=5, max_len=32)
    for slot, prompt in enumerate(prompts, start=1):
        prefill(pair, cache, slot, prompt)
    proposals = [branching(31), Proposal.chain(tokens(4, 32)), Proposal(), branching(33, (0, 0, 0))]
    tree = DraftTree.of([5, 6, 7, 8], proposals, CPU)
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    out = pair.ours.forward(tree, cache, slice(1, 5), lengths, span=17 + tree.width)
    logits = pair.ours.logits(out.hidden_BNH)
    for row, prompt in enumerate(prompts):
        check_tree(pair, prompt, tree, logits[row], row)


def test_a_committed_path_is_the_past_of_what_follows(pair: Pair) -> None:
    prompt = tokens(9, seed=7)
    cache = pair.ours.new_cache(slots=2, max_len=32)
    prefill(pair, cache, 1, prompt)
    tree = DraftTree.of([7], [branching(8)], CPU)
    lengths = torch.tensor([9])
    pair.ours.forward(tree, cache, slice(1, 2), lengths, span=18)
    path = [0, 1, 3, 5]
    cache.commit(slice(1, 2), lengths, torch.tensor([path]), torch.tensor([len(path)]))
    text = prompt + [int(tree.tokens_BN[0, node]) for node in path]
    follow = DraftTree.of([42], [branching(9)], CPU)
    out = pair.ours.forward(follow, cache, slice(1, 2), torch.tensor([13]), span=22)
    check_tree(pair, text, follow, pair.ours.logits(out.hidden_BNH)[0], 0)
