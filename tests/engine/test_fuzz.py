"""Rounds of random acceptance: what is committed stays what a fresh reading of the text would leave.

A few rounds on a CPU; 200 on a GPU, by fused kernels, against the CPU.
"""

import numpy as np
import pytest
import torch
from engine.running import CPU, TARGETS, tiny_target

from outrider.engine.tree import DraftTree, Proposal
from outrider.engine.walk import follow

VOCAB, ROWS, SLOTS = 29, slice(1, 3), 4
CUDA = torch.cuda.is_available()


def proposal(rng, nodes):
    """A random tree; siblings carry different tokens."""
    parents = [int(rng.integers(max(0, node - 4), node + 1)) for node in range(nodes)]
    taken, tokens = {}, []
    for parent in parents:
        free = [token for token in range(VOCAB) if token not in taken.setdefault(parent, set())]
        tokens.append(int(rng.choice(free)))
        taken[parent].add(tokens[-1])
    return Proposal(tuple(tokens), tuple(parents))


def decisions(rng, tree):
    """Follow a random child of each node, or none."""
    made = torch.full(tree.tokens_BN.shape, VOCAB, dtype=torch.int64)
    for row in range(len(made)):
        for node in rng.permutation(np.arange(1, tree.width)):
            if rng.random() < 0.9:
                made[row, tree.parents_BN[row, node].cpu()] = tree.tokens_BN[row, node].cpu()
    return made.to(tree.tokens_BN.device)


def fuzz(target, reference, rounds, *, tolerance, seed=0):
    rng = np.random.default_rng(seed)
    cache = target.new_cache(slots=SLOTS, max_len=rounds * 8 + 80)
    texts, lengths = [[1], [2]], torch.zeros(2, dtype=torch.int64, device=target.device)
    for number in range(rounds):
        nodes = int(rng.choice([0, 1, 5, 15, 20, 63]))
        tree = DraftTree.of([text[-1] for text in texts], [proposal(rng, nodes) for _ in texts], target.device)
        target.forward(tree, cache, ROWS, lengths, span=None)
        walk = follow(tree, decisions(rng, tree))
        counts = (walk.accepted_B + 1).clamp(max=8)
        cache.commit(ROWS, lengths, walk.path_BN, counts, in_place=False)
        lengths = lengths + counts
        words = tree.tokens_BN.gather(1, walk.path_BN).tolist()
        for text, row, count in zip(texts, words, counts.tolist(), strict=True):
            text += [*row[1:count], int(rng.integers(VOCAB))]
        if number == rounds - 1 or number % 50 == 49:
            check(cache, reference, texts, lengths.tolist(), tolerance)
    return texts


def check(cache, reference, texts, lengths, tolerance):
    for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        assert length == len(text) - 1
        fresh = reference.new_cache(slots=1, max_len=length)
        chain = DraftTree.chain(torch.tensor([text[:-1]], device=reference.device))
        reference.forward(chain, fresh, slice(0, 1), torch.tensor([0], device=reference.device), span=length)
        whole = torch.arange(length, device=reference.device)[None]
        fresh.commit(slice(0, 1), torch.tensor([0]), whole, torch.tensor([length]), in_place=True)
        slot = slice(ROWS.start + row, ROWS.start + row + 1)
        pairs = [
            (ours, theirs)
            for layer in fresh.layers
            for ours, theirs in zip(
                cache.read(layer, slot, slice(0, length)), fresh.read(layer, slice(0, 1), slice(0, length)), strict=True
            )
        ]
        if fresh.states is not None:
            pairs += zip((s[:, slot] for s in cache.states.stacked), fresh.states.stacked, strict=True)
        for ours, theirs in pairs:
            assert float((ours.cpu() - theirs.cpu()).norm() / theirs.norm()) < tolerance


@pytest.mark.parametrize("family", TARGETS)
def test_what_is_committed_is_the_text(family):
    target = tiny_target(VOCAB, max_position_embeddings=4096, **TARGETS[family])
    assert any(len(text) > 12 for text in fuzz(target, target, 12, tolerance=1e-4))


@pytest.mark.skipif(not CUDA, reason="needs a CUDA GPU")
@pytest.mark.parametrize("family", TARGETS)
def test_two_hundred_rounds_by_kernels_equal_the_cpu(family):
    options = {"max_position_embeddings": 4096, **TARGETS[family]}
    target = tiny_target(VOCAB, device=torch.device("cuda"), **options)
    fuzz(target, tiny_target(VOCAB, device=CPU, **options), 200, tolerance=1e-4)
