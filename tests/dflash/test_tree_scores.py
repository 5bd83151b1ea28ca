"""The probabilities behind a tree's nodes, in float64, against the laws written out for each path on its own."""

import pytest
import torch
from dflash.random_drafter import (
    DFLASH2,
    DSPARK,
    config_of,
    network_of,
    random_drafter,
    random_features,
    random_target,
)
from dflash.reference import draft_hidden, logits_of
from dflash.walks import markov_logits
from drafters.test_trees import words_of
from torch import Tensor

from outrider.drafters.trees.candidates import AfterPath, Candidates
from outrider.drafters.trees.frontier import grow
from outrider.models.dflash.config import Markov

CONTEXT, ANCHOR, BUDGET, WORDS = 9, 3, 40, 7
KINDS = {
    "dflash2": DFLASH2,
    "vanilla": DSPARK | {"markov": Markov(5, "vanilla")},
    "gated": DSPARK | {"markov": Markov(5, "gated")},
    "rnn": DSPARK | {"markov": Markov(5, "rnn")},
    "rnn of fewer words": DSPARK | {"markov": Markov(5, "rnn"), "own_head": True, "draft_vocab_size": 23},
}


class Block:
    """Logits and hidden states of one block by the dense network, and the tree that our code makes of them."""

    def __init__(self, kind: str, seed: int) -> None:
        self.config = config_of(**KINDS[kind])
        target, embed, head = random_target(self.config, seed)
        self.tensors = random_drafter(self.config, seed)
        self.network = network_of(self.config, self.tensors, target)
        features_TF = random_features(self.config, CONTEXT, seed=seed)
        self.hidden_NH = draft_hidden(self.config, self.tensors, embed, features_TF, ANCHOR)
        self.hidden_KH = self.hidden_NH[-self.config.max_tokens :]
        self.logits_KV = logits_of(self.config, self.tensors, head, self.hidden_KH)

    def tree(self, words: int):
        found = Candidates.of(self.logits_KV[None], words, self.network.words)
        assert self.network.correction is not None
        scores = AfterPath(self.network.correction, self.hidden_KH[None], found)
        depth = self.config.max_tokens
        return grow(scores, torch.tensor([ANCHOR]), depth=depth, budget=BUDGET).on_host()[0]

    def own(self, word: int) -> int:
        return word if self.network.words is None else self.network.words.tolist().index(word)

    def selector_law(self, slot: int, path: tuple[int, ...]) -> Tensor:
        """Log-probabilities [V] of a slot's words: the softmax over its candidates, nothing outside."""
        name = "candidate_selector."
        wanted = self.tensors[f"{name}predecessor_codebook"][(ANCHOR, *path)[slot]]
        wanted = wanted * (self.tensors[f"{name}hidden_projection.weight"] @ self.hidden_KH[slot])
        logits = self.logits_KV[slot]
        offered = logits.topk(self.config.selector.top_k).indices
        scores = torch.full_like(logits, float("-inf"))
        scores[offered] = logits[offered] + self.tensors[f"{name}successor_codebook"][offered] @ wanted
        return scores.log_softmax(-1)

    def markov_law(self, slot: int, path: tuple[int, ...], words: int) -> Tensor:
        """Log-probabilities [V]: candidates corrected, the rest as the slot alone has it."""
        block = [ANCHOR, *path, *[0] * self.config.block_size][: self.config.block_size]
        corrected = markov_logits(self.config, self.tensors, self.hidden_NH, self.logits_KV, block)[slot]
        scores = self.logits_KV[slot].clone()
        offered = scores.topk(words).indices
        scores[offered] = corrected[offered]
        return scores.log_softmax(-1)

    def law(self, slot: int, path: tuple[int, ...], words: int) -> Tensor:
        return self.markov_law(slot, path, words) if self.config.markov else self.selector_law(slot, path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_every_node_has_the_probability_of_its_own_path(kind, seed):
    block = Block(kind, seed)
    words = block.config.selector.top_k if block.config.selector else WORDS
    nodes = block.tree(words)
    assert len(nodes) == BUDGET
    assert nodes.log_reach == sorted(nodes.log_reach, reverse=True)
    for path, reach in zip(words_of(nodes), nodes.log_reach, strict=True):
        laws = [block.law(slot, path, words)[block.own(word)] for slot, word in enumerate(path)]
        assert reach == pytest.approx(float(sum(laws)), abs=1e-9)


def test_with_all_words_as_candidates_the_law_of_a_markov_head_is_exact():
    block = Block("gated", 4)
    nodes = block.tree(block.config.vocab_size)
    for path, reach in zip(words_of(nodes), nodes.log_reach, strict=True):
        padded = [ANCHOR, *path, *[0] * block.config.block_size][: block.config.block_size]
        exact = markov_logits(block.config, block.tensors, block.hidden_NH, block.logits_KV, padded).log_softmax(-1)
        wanted = sum(float(exact[slot, word]) for slot, word in enumerate(path))
        assert reach == pytest.approx(wanted, abs=1e-9)


def test_the_path_does_change_what_comes_next():
    trees = [Block(kind, 1).tree(WORDS) for kind in ("dflash2", "gated")]
    for nodes in trees:
        best: dict[int, list[int]] = {}
        for node, (token, parent) in enumerate(zip(nodes.tokens, nodes.parents, strict=True), start=1):
            best.setdefault(len(words_of(nodes)[node - 1]), []).append(token) if parent else None
        assert any(len(set(tokens)) > WORDS // 2 for tokens in best.values())
