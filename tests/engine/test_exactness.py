"""Greedy text is the target's own: Transformers' ``generate`` token for token, whatever is drafted.

Random weights in fp32; their logits lie far apart, so no near-tie excuses a difference.
"""

import fakes
import numpy as np
import pytest
import torch
from engine.running import drafter_of, engine_of, finish, plain
from models.peers import SIZES, VARIANTS, make_pair

from outrider.engine.params import SamplingParams
from outrider.registry import DRAFTERS

VOCAB = SIZES["vocab_size"]
PROMPTS = ((5,), (3, 5, 9), (11, 12, 11, 12, 11, 12, 11), (96, 0, 50, 51, 52, 96, 0))
GREEDY = SamplingParams(max_tokens=24)
FAMILIES = ("llama", "qwen2", "qwen3 windows", "qwen3 layer types", "qwen3_5")
PENALTIES = {
    "repetition": {"repetition_penalty": 1.6},
    "frequency": {"frequency_penalty": 1.5},
    "presence": {"presence_penalty": 2.0, "logit_bias": {5: 3.0, 7: -2.0}},
    "all": {"repetition_penalty": 1.2, "presence_penalty": -0.5, "frequency_penalty": 2.0},
}


def adversaries(known) -> dict[str, fakes.FakeDrafter]:
    return {
        "random trees": fakes.RandomTree(VOCAB, 1),
        "oracle": fakes.Oracle(known, VOCAB, 2),
        "always wrong": fakes.AlwaysWrong(known, VOCAB, 3),
        "flood": fakes.Flood(VOCAB, 4),
        "sampled chains": fakes.SampledChain(lambda text: np.full(VOCAB, 1 / VOCAB), 5),
    }


def all_drafters(target, known):
    return {**{name: drafter_of(name, target, slots=3, sampled=False) for name in DRAFTERS}, **adversaries(known)}


@torch.inference_mode()
def generate(pair, prompt, params: SamplingParams) -> list[int]:
    ids = torch.tensor([prompt])
    settings = {"repetition_penalty": params.repetition_penalty}
    if params.logit_bias:
        settings["sequence_bias"] = {(t,): float(b) for t, b in params.logit_bias.items()}
    out = pair.theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=params.max_tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        **settings,
    )
    return out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_family_says_what_transformers_says_with_and_without_drafts(variant):
    pair = make_pair(variant)
    for prompt in PROMPTS[::2]:
        wanted = generate(pair, prompt, GREEDY)
        assert plain(pair.ours, prompt, GREEDY) == wanted
        known = {prompt: wanted}
        for drafter in (fakes.Oracle(known, VOCAB, 6), fakes.RandomTree(VOCAB, 7)):
            engine = engine_of(pair.ours, drafter)
            assert finish(engine, [(prompt, GREEDY)])[0].output == wanted


@pytest.mark.parametrize("settings", [{"repetition_penalty": 1.5}, {"logit_bias": {5: 4.0, 9: -3.0}}], ids=str)
def test_edited_greedy_decoding_says_what_transformers_says(settings):
    pair = make_pair("llama")
    params = SamplingParams(max_tokens=24, **settings)
    for prompt in PROMPTS:
        wanted = generate(pair, prompt, params)
        assert plain(pair.ours, prompt, params) == wanted
        engine = engine_of(pair.ours, fakes.Oracle({prompt: wanted}, VOCAB, 8))
        assert finish(engine, [(prompt, params)])[0].output == wanted


@pytest.mark.parametrize(
    ("variant", "settings"),
    [
        *((variant, {}) for variant in FAMILIES),
        *(("llama", settings) for settings in PENALTIES.values()),
    ],
    ids=[*FAMILIES, *PENALTIES],
)
def test_no_drafter_changes_a_greedy_text_alone_or_in_a_batch(variant, settings):
    target = make_pair(variant).ours
    params = SamplingParams(max_tokens=14, **settings)
    known = {prompt: plain(target, prompt, params) for prompt in PROMPTS}
    for name, drafter in all_drafters(target, known).items():
        engine = engine_of(target, drafter, slots=3, costs=fakes.Free())
        for sequence in finish(engine, [(prompt, params) for prompt in PROMPTS]):
            assert sequence.output == known[sequence.prompt], name
            assert sequence.finish_reason == "length"
            assert sum(r.accepted + 1 for r in sequence.rounds) >= 14


def test_the_oracle_is_believed_and_the_wrong_one_is_not():
    target = make_pair("llama").ours
    known = {prompt: plain(target, prompt, GREEDY) for prompt in PROMPTS}
    requests = [(prompt, GREEDY) for prompt in PROMPTS]
    for sequence in finish(engine_of(target, fakes.Oracle(known, VOCAB, 2)), requests):
        assert len(sequence.rounds) < 15
    for sequence in finish(engine_of(target, fakes.AlwaysWrong(known, VOCAB, 3)), requests):
        assert len(sequence.rounds) == 24
        assert not any(r.accepted for r in sequence.rounds)


SAMPLED = SamplingParams(temperature=0.7, top_p=0.95, max_tokens=16, seed=11, frequency_penalty=0.3)


@pytest.mark.parametrize("variant", FAMILIES[::2])
def test_one_seed_gives_one_text_with_every_tree_and_in_every_batch(variant):
    target = make_pair(variant).ours
    known = {prompt: plain(target, prompt, SAMPLED) for prompt in PROMPTS}
    drafters = all_drafters(target, known)
    del drafters["sampled chains"]  # acceptance by ratio uses other uniforms: same law, other text
    for name, drafter in drafters.items():
        engine = engine_of(target, drafter, slots=3, costs=fakes.Free())
        for sequence in finish(engine, [(prompt, SAMPLED) for prompt in PROMPTS]):
            assert sequence.output == known[sequence.prompt], name


def test_other_seeds_give_other_texts():
    target = make_pair("llama").ours
    hot = [SamplingParams(temperature=2.0, max_tokens=16, seed=seed) for seed in range(5)]
    assert len({tuple(plain(target, PROMPTS[1], params)) for params in hot}) == 5
