"""The heads of DFlash2 and DSpark against walks written from their mathematics, in float64."""

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
from dflash.walks import confidences, markov_chain, markov_logits, previous_tokens, selector_chain

from outrider.models.dflash.config import Confidence, Markov

KINDS = ["vanilla", "gated", "rnn"]
LAYOUTS = [(kind, True) for kind in KINDS] + [("vanilla", False), ("gated", False)]
CONTEXT = 17


class Walk:
    """One block's hidden states and logits, from the dense network, and our heads of the same drafter."""

    def __init__(self, seed: int, **changes) -> None:
        self.config = config_of(**changes)
        target, self.embed, head = random_target(self.config, seed)
        self.tensors = random_drafter(self.config, seed)
        self.network = network_of(self.config, self.tensors, target)
        features_TF = random_features(self.config, CONTEXT, seed=seed)
        self.anchor = seed
        self.hidden_NH = draft_hidden(self.config, self.tensors, self.embed, features_TF, seed)
        self.hidden_KH = self.hidden_NH[-self.config.max_tokens :]
        self.logits_KV = logits_of(self.config, self.tensors, head, self.hidden_KH)

    def greedy(self) -> list[int]:
        """Follow our correction's best token from slot to slot."""
        correction, words = self.network.correction, self.network.words
        state, previous, chain = correction.start(1), self.anchor, []
        for hidden_H, logits_V in zip(self.hidden_KH, self.logits_KV, strict=True):
            few = correction.candidates
            offered_C = None if few is None else logits_V.topk(few).indices
            asked = None if offered_C is None else offered_C[None]
            added, state = correction.step(hidden_H[None], torch.tensor([[previous]]), state, asked)
            scores_C = (logits_V if offered_C is None else logits_V[offered_C]) + added[0, 0]
            best = scores_C.argmax()
            word = int(best if offered_C is None else offered_C[best])
            previous = word if words is None else int(words[word])
            chain.append(previous)
        return chain


@pytest.mark.parametrize("seed", range(8))
def test_the_selector_walks_as_its_formula_says(seed):
    walk = Walk(seed, **DFLASH2)
    chain = walk.greedy()
    assert chain == selector_chain(walk.config, walk.tensors, walk.hidden_KH, walk.logits_KV, seed)
    assert len(chain) == walk.config.max_tokens


def test_the_selector_does_change_what_is_chosen():
    walks = [Walk(seed, **DFLASH2) for seed in range(8)]
    assert any(walk.greedy() != walk.logits_KV.argmax(-1).tolist() for walk in walks)


@pytest.mark.parametrize(("kind", "anchor_predicts"), LAYOUTS)
def test_markov_heads_walk_as_their_formulas_say(kind, anchor_predicts):
    for seed in range(4):
        walk = Walk(seed, **DSPARK | {"markov": Markov(5, kind), "anchor_predicts": anchor_predicts})
        assert walk.greedy() == markov_chain(walk.config, walk.tensors, walk.hidden_NH, walk.logits_KV, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_markov_heads_do_change_what_is_chosen(kind):
    walks = [Walk(seed, **DSPARK | {"markov": Markov(5, kind)}) for seed in range(4)]
    assert all(walk.greedy() != walk.logits_KV.argmax(-1).tolist() for walk in walks)


@pytest.mark.parametrize("kind", KINDS)
def test_a_markov_head_of_fewer_words_reads_target_ids_and_scores_its_own(kind):
    changes = {"markov": Markov(5, kind), "own_head": True, "draft_vocab_size": 23}
    walk = Walk(3, **DSPARK | changes)
    assert walk.greedy() == markov_chain(walk.config, walk.tensors, walk.hidden_NH, walk.logits_KV, 3)


@pytest.mark.parametrize(("kind", "anchor_predicts"), LAYOUTS)
def test_markov_scores_of_several_paths_and_few_words_are_those_of_each_alone(kind, anchor_predicts):
    walk = Walk(2, **DSPARK | {"markov": Markov(5, kind), "anchor_predicts": anchor_predicts})
    paths = [[2, *torch.randperm(60)[:7].tolist()] for _ in range(3)]
    words_C = torch.tensor([4, 0, 33])
    correction = walk.network.correction
    state = correction.start(1).expand(1, 3, -1)
    expected = [markov_logits(walk.config, walk.tensors, walk.hidden_NH, walk.logits_KV, path) for path in paths]
    for slot, hidden_H in enumerate(walk.hidden_KH):
        previous_BW = torch.tensor([[path[slot] for path in paths]])
        added, state = correction.step(hidden_H[None], previous_BW, state, words_C[None])
        found = walk.logits_KV[slot, words_C] + added[0]
        wanted = torch.stack([logits[slot, words_C] for logits in expected])
        assert float((found - wanted).abs().max()) <= 1e-9


@pytest.mark.parametrize("with_markov", [True, False])
def test_confidence_is_the_logistic_of_hidden_state_and_token_before(with_markov):
    walk = Walk(1, **DSPARK | {"markov": Markov(5, "vanilla"), "confidence": Confidence(with_markov=with_markov)})
    previous = previous_tokens(walk.config, [1, 5, 9, 2, 2, 40, 7, 0])
    found = walk.network.confidence(walk.hidden_KH[None], torch.tensor([previous]))[0]
    expected = confidences(walk.config, walk.tensors, walk.hidden_KH, previous)
    assert float((found - expected).abs().max()) <= 1e-9
    assert float(expected.std()) > 0.02
