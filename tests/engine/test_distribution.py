"""Sampled text follows the target's law, by chi-square against every text enumerated; and the test can fail.

A vocabulary of four words, texts of four tokens, 1500 texts a case with seeds 0 to 1499. The reference law is made
of Transformers' processors. Each comparison (whole text; last two tokens) fails falsely for fresh seeds once in
10,000; the file has 26 of them, so a change of seeds fails once in 400. Seeds are fixed.
"""

from functools import cache
from itertools import product

import fakes
import numpy as np
import pytest
import torch
from engine import reference
from engine.running import drafter_of, engine_of, finish, tiny_target
from scipy import stats

from outrider.engine import step
from outrider.engine.params import SamplingParams
from outrider.engine.rules import draw
from outrider.engine.tree import DraftTree, Proposal
from outrider.engine.uniforms import RESIDUAL
from outrider.engine.verify import verify
from outrider.registry import DRAFTERS

VOCAB, LENGTH, TEXTS, SLOTS = 4, 4, 1500, 100
PROMPT = (1,)  # one token: nothing to prefill, so that all slots decode together
FALSE_ALARM = 1e-4
SETTINGS = {
    "plain": {"temperature": 1.0},
    "hot": {"temperature": 1.7, "logit_bias": {2: 0.7}},
    "cut": {"temperature": 0.8, "top_p": 0.8},
    "penalties": {"temperature": 0.9, "frequency_penalty": 0.9, "repetition_penalty": 1.3},
}
TARGET = tiny_target(VOCAB, seed=3)
Text = tuple[int, ...]


@cache
def raw_logits() -> dict[Text, torch.Tensor]:
    """The target's logits after every text shorter than LENGTH, from one pass over chains."""
    texts = torch.tensor(list(product(range(VOCAB), repeat=LENGTH - 1)))
    chains = torch.cat((torch.full((len(texts), 1), PROMPT[0]), texts), 1)
    cache_ = TARGET.new_cache(slots=len(texts), max_len=LENGTH)
    lengths = torch.zeros(len(texts), dtype=torch.int64)
    out = TARGET.forward(DraftTree.chain(chains), cache_, slice(0, len(texts)), lengths, span=LENGTH)
    logits = TARGET.logits(out.hidden_BNH)
    return {tuple(text[:done]): logits[row, done] for row, text in enumerate(texts.tolist()) for done in range(LENGTH)}


@cache
def next_law(name: str, text: Text) -> np.ndarray:
    params = SamplingParams(**SETTINGS[name])
    return reference.law(raw_logits()[text], PROMPT, text, params).numpy()


@cache
def text_law(name: str) -> dict[Text, float]:
    return {
        text: float(np.prod([next_law(name, text[:i])[text[i]] for i in range(LENGTH)]))
        for text in product(range(VOCAB), repeat=LENGTH)
    }


def sample(name: str, drafter) -> tuple[list[Text], int]:
    engine = engine_of(TARGET, drafter, slots=SLOTS, max_len=LENGTH + 1, costs=fakes.Free())
    sequences = [
        engine.add(PROMPT, SamplingParams(**SETTINGS[name], max_tokens=LENGTH, seed=seed)) for seed in range(TEXTS)
    ]
    for _ in engine.run():
        pass
    accepted = sum(r.accepted for s in sequences for r in s.rounds)
    return [tuple(s.output) for s in sequences], accepted


def pvalue(found: list[Text], law: dict[Text, float], part: slice) -> float:
    """Chi-square of one part of the texts; cells that expect fewer than five are put together."""
    expected: dict[Text, float] = {}
    for text, probability in law.items():
        expected[text[part]] = expected.get(text[part], 0.0) + probability * len(found)
    counts = dict.fromkeys(expected, 0)
    for text in found:
        counts[text[part]] += 1
    large = [cell for cell, count in expected.items() if count >= 5]
    small = [cell for cell in expected if expected[cell] < 5]
    observed = [*(counts[cell] for cell in large), sum(counts[cell] for cell in small)]
    wanted = [*(expected[cell] for cell in large), sum(expected[cell] for cell in small)]
    if wanted[-1] == 0:
        assert observed.pop() == 0, "a word that the law forbids was said"
        wanted.pop()
    return float(stats.chisquare(observed, wanted).pvalue)


def follows(name: str, found: list[Text]) -> bool:
    law = text_law(name)
    forbidden = [text for text in found if law[text] == 0]
    parts = (slice(None), slice(-2, None))
    return not forbidden and all(pvalue(found, law, part) > FALSE_ALARM for part in parts)


def draft_law(name: str, quality: str):
    """The law a chain is drawn from: the target's, one near it, or one that likes what the target does not."""

    def law(text: Text) -> np.ndarray:
        target = next_law(name, text[len(PROMPT) :])
        blend = {
            "equal": target,
            "good": 0.7 * target + 0.3 / VOCAB,
            "bad": (1.001 - target) / (1.001 * VOCAB - 1),
            "sharp": target**3,
        }[quality]
        return blend / blend.sum()

    return law


@pytest.mark.parametrize("name", ["plain", "penalties"])
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_every_drafter_of_the_table_leaves_the_law_unchanged(drafter, name):
    texts, accepted = sample(name, drafter_of(drafter))
    assert accepted > 0 or drafter == "none"
    assert follows(name, texts)


@pytest.mark.parametrize("name", SETTINGS)
def test_random_trees_leave_the_law_unchanged(name):
    texts, accepted = sample(name, fakes.RandomTree(VOCAB, 1))
    assert accepted > TEXTS / 2
    assert follows(name, texts)


@pytest.mark.parametrize(
    ("quality", "name"),
    [("equal", "plain"), ("good", "cut"), ("bad", "penalties"), ("sharp", "hot"), ("sharp", "cut")],
)
def test_chains_drawn_from_a_law_of_their_own_leave_the_law_unchanged(quality, name):
    texts, accepted = sample(name, fakes.SampledChain(draft_law(name, quality), 2))
    assert accepted > TEXTS / 50
    assert follows(name, texts)


class Stubborn(fakes.FakeDrafter):
    """Always the same word."""

    def __init__(self, word: int) -> None:
        super().__init__()
        self._word = word

    def guess(self, slot) -> Proposal:
        return Proposal.chain([self._word])


def test_a_draft_law_equal_to_the_targets_is_always_accepted():
    drafter = fakes.SampledChain(draft_law("plain", "equal"), 3)
    engine = engine_of(TARGET, drafter, max_len=LENGTH + 1)
    params = [SamplingParams(temperature=1.0, max_tokens=LENGTH, seed=seed) for seed in range(50)]
    sequences = finish(engine, [(PROMPT, each) for each in params])
    assert sum(r.drafted for s in sequences for r in s.rounds) > 50
    assert all(r.accepted == r.drafted for s in sequences for r in s.rounds)


def test_the_comparison_fails_a_drafter_that_chooses_and_says_it_drew():
    texts, _ = sample("plain", fakes.Dishonest(draft_law("plain", "good"), 4))
    assert not follows("plain", texts)


def test_the_comparison_fails_a_verifier_that_forgets_the_residual(monkeypatch):
    def forgetful(tree, logits_BNV, rules, positions):
        walk = verify(tree, logits_BNV, rules, positions)
        for row, rule in enumerate(rules):
            if rule is not None:
                at = int(walk.accepted_B[row])
                law = rule.probabilities(logits_BNV[row, at : at + 1])
                uniform = torch.from_numpy(rule.uniforms.at(RESIDUAL, positions[row] + at, 1))
                walk.bonus_B[row] = draw(law, uniform)[0]
        return walk

    monkeypatch.setattr(step, "verify", forgetful)
    texts, _ = sample("plain", fakes.SampledChain(draft_law("plain", "sharp"), 5))
    assert not follows("plain", texts)


def test_the_comparison_fails_a_verifier_that_keeps_one_draft_in_ten_unseen(monkeypatch):
    def generous(tree, logits_BNV, rules, positions):
        for row, rule in enumerate(rules):
            if rule is not None and rule.params.seed % 10 == 0:
                logits_BNV[row, 0, tree.tokens_BN[row, -1]] += 50
        return verify(tree, logits_BNV, rules, positions)

    monkeypatch.setattr(step, "verify", generous)
    unlikely = int(next_law("plain", ()).argmin())
    texts, _ = sample("plain", Stubborn(unlikely))
    assert not follows("plain", texts)
