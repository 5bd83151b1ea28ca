"""The library behind ``outrider compare``: order, ratios, and why two texts differ."""

import pytest
import torch
from tiny_model import write_tiny_model

from outrider.compare import PLAIN, compare
from outrider.differences import NOTHING, examine
from outrider.engine.params import SamplingParams
from outrider.errors import UsageError
from outrider.runner import load

PARAMS = SamplingParams(max_tokens=12, ignore_eos=True)


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return load(str(write_tiny_model(tmp_path_factory.mktemp("compare") / "tiny")), max_len=256)


@pytest.fixture(scope="module")
def prompts(runner):
    return [runner.encode(text) for text in ("abc abc abc", "the end of the", "in the inn")]


def examined(runner, params, prompt, plain, drafted):
    return examine(runner.target, params, drafter="x", prompt=0, prompt_ids=prompt, plain=plain, drafted=drafted)


def test_who_goes_first_is_rotated(runner, prompts):
    told = []
    compare(runner, prompts, ["ngram"], PARAMS, progress=lambda name, prompt: told.append((prompt, name)))
    assert told == [(0, "none"), (0, "ngram"), (1, "ngram"), (1, "none"), (2, "none"), (2, "ngram")]


def test_plain_decoding_comes_first_and_once(runner, prompts):
    compared = compare(runner, prompts[:1], ["ngram", PLAIN, "ngram"], PARAMS)
    assert [method.drafter for method in compared.comparison.methods] == ["none", "ngram"]


def test_tokens_are_counted_and_speeds_are_pooled(runner, prompts):
    compared = compare(runner, prompts, ["ngram"], PARAMS)
    plain, drafted = compared.comparison.methods
    seconds = [sum(c.decode_seconds for c in compared.completions[name]) for name in ("none", "ngram")]
    assert plain.tokens == drafted.tokens == 36
    assert plain.rounds == 36
    assert drafted.tokens_per_second == pytest.approx(36 / seconds[1])
    assert drafted.ratio == pytest.approx(seconds[0] / seconds[1])
    assert compared.differences == ()


def test_draws_need_a_seed_and_a_comparison_needs_a_prompt(runner, prompts):
    with pytest.raises(UsageError, match="seed"):
        compare(runner, prompts, ["ngram"], SamplingParams(temperature=1.0))
    with pytest.raises(UsageError, match="at least one prompt"):
        compare(runner, [], ["ngram"], PARAMS)


def test_the_margin_is_that_of_the_targets_own_logits(runner, prompts):
    plain = runner.generate(prompts[0], max_tokens=6, ignore_eos=True, logprobs=20)
    top = plain.pieces[3].logprob.top
    drafted = (*plain.tokens[:3], top[1][0], 5)
    found = examined(runner, PARAMS, prompts[0], plain.tokens, drafted)
    assert (found.position, found.plain_token, found.drafted_token) == (3, top[0][0], top[1][0])
    assert found.margin == pytest.approx(top[0][1] - top[1][1], abs=1e-5)
    assert not found.near_tie


def test_bias_and_penalties_count_in_the_margin(runner, prompts):
    settings = {"max_tokens": 4, "ignore_eos": True, "repetition_penalty": 1.3}
    plain = runner.generate(prompts[0], SamplingParams(**settings)).tokens
    other = 5 if plain[2] != 5 else 6
    alone = examined(runner, SamplingParams(**settings), prompts[0], plain, (*plain[:2], other))
    assert not alone.near_tie
    level = SamplingParams(**settings, logit_bias={other: alone.margin})
    assert examined(runner, level, prompts[0], plain, (*plain[:2], other)).margin == pytest.approx(0, abs=1e-4)


def test_two_words_with_the_same_weights_are_a_near_tie(runner, prompts):
    tied = load(str(runner.checkpoint.source.path), max_len=256)
    plain = tied.generate(prompts[1], PARAMS).tokens
    level = SamplingParams(logit_bias={})
    first, twin = plain[0], (plain[0] + 1) % 256
    gap = examined(tied, level, prompts[1], (first,), (twin,)).margin
    near = SamplingParams(logit_bias={twin: gap - 5e-5})
    assert examined(tied, near, prompts[1], (first,), (twin,)).near_tie


def test_a_text_that_ends_early_is_a_real_difference(runner, prompts):
    found = examined(runner, PARAMS, prompts[0], (1, 2, 3), (1, 2))
    assert (found.position, found.drafted_token) == (2, NOTHING)
    assert not found.near_tie


def test_in_sampling_the_margin_is_the_distance_in_probability(runner, prompts):
    """The number that decides is moved into the other token's share: the margin is how far it had to go."""
    from outrider.differences import _distance

    law = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    assert _distance(law, 0.49999, (1, 2)) == pytest.approx(1e-5)
    assert _distance(law, 0.1, (0, 2)) == pytest.approx(0.4)
    params = SamplingParams(max_tokens=8, temperature=1.0, seed=3, ignore_eos=True)
    drawn = runner.generate(prompts[0], params).tokens
    other = (drawn[0] + 100) % 256
    assert not examined(runner, params, prompts[0], drawn, (other,)).near_tie
