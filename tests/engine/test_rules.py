"""Rules against Transformers' processors; path-dependent ones against the path as plain text; draws against their law.

The chi-square and Kolmogorov-Smirnov tests use fixed seeds; for a fresh seed each would fail falsely once in 10,000.
"""

import hypothesis
import numpy as np
import pytest
import torch
from engine import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import proposals

from outrider.engine.params import SamplingParams
from outrider.engine.rules import Rules, draw
from outrider.engine.tree import DraftTree, Proposal
from outrider.errors import UsageError

CPU = torch.device("cpu")
VOCAB = 40
FALSE_ALARM = 1e-4
SETTINGS = {
    "temperature": {"temperature": 0.6},
    "hot": {"temperature": 3.0},
    "top_k": {"temperature": 1.0, "top_k": 7},
    "top_k of one": {"temperature": 1.0, "top_k": 1},
    "top_k beyond the vocabulary": {"temperature": 1.0, "top_k": VOCAB},
    "top_p": {"temperature": 0.8, "top_p": 0.7},
    "top_p that keeps one": {"temperature": 0.8, "top_p": 1e-6},
    "min_p": {"temperature": 1.3, "min_p": 0.1},
    "all cuts": {"temperature": 1.1, "top_k": 20, "top_p": 0.9, "min_p": 0.05},
    "repetition": {"temperature": 1.0, "repetition_penalty": 1.4},
    "repetition wanted": {"temperature": 1.0, "repetition_penalty": 0.7},
    "presence": {"temperature": 1.0, "presence_penalty": 1.5},
    "frequency": {"temperature": 1.0, "frequency_penalty": 0.8},
    "negative penalties": {
        "temperature": 1.0,
        "frequency_penalty": -0.5,
        "presence_penalty": -0.5,
    },
    "bias": {"temperature": 1.0, "logit_bias": {3: 2.0, 8: -100.0}},
    "everything": {
        "temperature": 0.9,
        "top_k": 25,
        "top_p": 0.92,
        "min_p": 0.02,
        "repetition_penalty": 1.2,
        "presence_penalty": 0.4,
        "frequency_penalty": 0.3,
        "logit_bias": {1: 1.0, 2: -1.0},
    },
}


def rules_after(params: SamplingParams, prompt: list[int], output: list[int]) -> Rules:
    rules = Rules(params, VOCAB, CPU)
    rules.see_prompt(prompt)
    for token in output:
        rules.see_output([token])
    return rules


def ours(rules: Rules, tree: DraftTree, logits_NV: torch.Tensor) -> torch.Tensor:
    return rules.probabilities(rules.edit(logits_NV, tree.tokens_BN[0], tree.visible_BNN[0]))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@hypothesis.settings(max_examples=10)
@given(proposal=proposals(VOCAB, 8), seed=st.integers(0, 2**31))
def test_each_node_has_the_law_of_its_path_as_plain_text(settings, proposal, seed):
    params = SamplingParams(**settings)
    generator = np.random.default_rng(seed)
    prompt = generator.integers(0, VOCAB, 5).tolist()
    output = generator.integers(0, VOCAB, int(generator.integers(0, 6))).tolist()
    tree = DraftTree.of([[*prompt, *output][-1]], [proposal], CPU)
    logits = 2 * torch.from_numpy(generator.standard_normal((tree.width, VOCAB))).float()
    found = ours(rules_after(params, prompt, output), tree, logits)
    for node in range(tree.width):
        path = tree.visible_BNN[0, node].nonzero()[1:, 0]
        text = output + tree.tokens_BN[0, path].tolist()
        wanted = reference.law(logits[node], prompt, text, params)
        assert torch.equal(found[node] > 0, wanted > 0)
        torch.testing.assert_close(found[node], wanted, rtol=1e-5, atol=1e-7)


def test_verifying_a_draft_changes_nothing_that_is_remembered():
    params = SamplingParams(frequency_penalty=1.0, repetition_penalty=1.5)
    rules = rules_after(params, [1], [2])
    tree = DraftTree.of([2], [Proposal((5, 6, 7), (0, 0, 2))], CPU)
    logits = torch.zeros(tree.width, VOCAB)
    first = rules.edit(logits, tree.tokens_BN[0], tree.visible_BNN[0])
    assert torch.equal(first, rules.edit(logits, tree.tokens_BN[0], tree.visible_BNN[0]))
    assert not logits.any()


def test_no_word_without_probability_is_ever_drawn():
    laws = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    edges = torch.tensor([0.0, 0.25, 0.5, np.nextafter(0.5, 0), np.nextafter(1.0, 0)])
    drawn = [draw(laws, uniform.double().expand(2)).tolist() for uniform in edges]
    assert [first for first, _ in drawn] == [1, 1, 3, 1, 3]
    assert {second for _, second in drawn} == {2}


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8).filter(any), st.floats(0, 1, exclude_max=True))
def test_a_draw_has_probability_whatever_the_law_and_the_uniform(weights, uniform):
    law = torch.tensor([weights], dtype=torch.float64)
    law = law / law.sum()
    word = int(draw(law, torch.tensor([uniform], dtype=torch.float64))[0])
    assert law[0, word] > 0


def test_draws_follow_the_law():
    law = torch.tensor([0.5, 0.2, 0.0, 0.2, 0.07, 0.03], dtype=torch.float64)
    uniforms = torch.from_numpy(np.random.default_rng(5).random(20_000))
    counts = np.bincount(draw(law.expand(20_000, -1), uniforms).numpy(), minlength=6)
    assert counts[2] == 0
    kept = law.numpy() > 0
    assert stats.chisquare(counts[kept], law.numpy()[kept] * 20_000).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": 1.0, "top_p": 0.0},
        {"temperature": 1.0, "top_p": 1.1},
        {"temperature": 1.0, "top_k": -1},
        {"temperature": 1.0, "min_p": 1.0},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": float("inf")},
        {"presence_penalty": 2.1},
        {"frequency_penalty": float("nan")},
        {"logit_bias": {3: float("nan")}},
        {"logit_bias": {3: float("inf")}},
        {"seed": -1},
        {"stop": ("",)},
        {"max_tokens": 0},
        {"logprobs": -1},
        {"top_k": 5},
        {"top_p": 0.5, "min_p": 0.2},
    ],
    ids=str,
)
def test_settings_out_of_range_or_without_effect_are_refused(settings):
    with pytest.raises(UsageError) as caught:
        SamplingParams(**settings)
    assert "\n" not in str(caught.value)
