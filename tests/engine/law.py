"""A tiny target's law by enumeration, texts sampled by the engine, and the comparison of both by chi-square.

A vocabulary of four words, texts of four tokens, 1500 texts a case with seeds 0 to 1499. The reference law is made
of Transformers' processors.
"""

from functools import cache
from itertools import product

import fakes
import numpy as np
import torch
from engine import reference
from engine.running import TARGETS, engine_of, tiny_target
from scipy import stats

from outrider.engine.costs import Costs
from outrider.engine.params import SamplingParams
from outrider.engine.tree import DraftTree

VOCAB, LENGTH, TEXTS, SLOTS = 4, 4, 1500, 100
PROMPT = (1,)  # one token: nothing to prefill, so that all slots decode together
FALSE_ALARM = 1e-4
SETTINGS = {
    "plain": {"temperature": 1.0},
    "hot": {"temperature": 1.7, "logit_bias": {2: 0.7}},
    "cut": {"temperature": 0.8, "top_p": 0.8},
    "penalties": {"temperature": 0.9, "frequency_penalty": 0.9, "repetition_penalty": 1.3},
}
MODELS = {family: tiny_target(VOCAB, seed=3, **sizes) for family, sizes in TARGETS.items()}
TARGET = MODELS["llama"]
Text = tuple[int, ...]


@cache
def raw_logits(family: str) -> dict[Text, torch.Tensor]:
    """A target's logits after every text shorter than LENGTH, from one pass over chains."""
    texts = torch.tensor(list(product(range(VOCAB), repeat=LENGTH - 1)))
    chains = torch.cat((torch.full((len(texts), 1), PROMPT[0]), texts), 1)
    target = MODELS[family]
    cache_ = target.new_cache(slots=len(texts), max_len=LENGTH)
    lengths = torch.zeros(len(texts), dtype=torch.int64)
    out = target.forward(DraftTree.chain(chains), cache_, slice(0, len(texts)), lengths, span=LENGTH)
    logits = target.logits(out.hidden_BNH)
    return {tuple(text[:done]): logits[row, done] for row, text in enumerate(texts.tolist()) for done in range(LENGTH)}


@cache
def next_law(name: str, text: Text, family: str = "llama") -> np.ndarray:
    params = SamplingParams(**SETTINGS[name])
    return reference.law(raw_logits(family)[text], PROMPT, text, params).numpy()


@cache
def text_law(name: str, family: str) -> dict[Text, float]:
    return {
        text: float(np.prod([next_law(name, text[:i], family)[text[i]] for i in range(LENGTH)]))
        for text in product(range(VOCAB), repeat=LENGTH)
    }


def sample(name: str, drafter, costs: Costs | None = None, *, family: str = "llama") -> tuple[list[Text], int]:
    """Texts of the seeds 0 to TEXTS - 1, and how many draft tokens were accepted."""
    engine = engine_of(MODELS[family], drafter, slots=SLOTS, max_len=LENGTH + 1, costs=costs or fakes.Free())
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


def follows(name: str, found: list[Text], family: str = "llama") -> bool:
    law = text_law(name, family)
    forbidden = [text for text in found if law[text] == 0]
    parts = (slice(None), slice(-2, None))
    return not forbidden and all(pvalue(found, law, part) > FALSE_ALARM for part in parts)
