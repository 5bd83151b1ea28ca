"""Cuts found without sorting the vocabulary are those of a full stable sort, ties included."""

from collections.abc import Callable
from time import process_time

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.params import SamplingParams
from outrider.engine.rules import Rules

CPU = torch.device("cpu")
SMALL, LARGE = 40, 9001  # words: few, so that ties and odd cuts abound; more than are looked at in one go


def rules_of(params: SamplingParams, words: int, device: torch.device = CPU) -> Rules:
    return Rules(params, words, device)


def by_sorting(logits_NV: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """The law as its definition says, step by step over the whole vocabulary."""
    logits = logits_NV.double() / params.temperature
    if 0 < params.top_k < logits.shape[-1]:
        kth = logits.topk(params.top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
    if params.top_p < 1:
        ordered, order = logits.sort(dim=-1, descending=True, stable=True)
        shares = ordered.softmax(-1)
        dropped = (shares.cumsum(-1) - shares) >= params.top_p
        dropped[..., 0] = False
        logits = logits.masked_fill(torch.zeros_like(dropped).scatter(-1, order, dropped), float("-inf"))
    law = logits.softmax(-1)
    law = law.masked_fill(law < params.min_p * law.amax(-1, keepdim=True), 0.0)
    return law / law.sum(-1, keepdim=True)


def same(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """The same words, and their probabilities to the last digits."""
    return torch.equal(found > 0, wanted > 0) and torch.allclose(found, wanted, rtol=1e-13, atol=0)


def logits_of(rows: int, words: int, *, spread: float, step: float, seed: int) -> torch.Tensor:
    """Random logits; the coarser the step, the more of them tie."""
    drawn = spread * torch.randn(rows, words, generator=torch.Generator().manual_seed(seed))
    return (drawn / step).round() * step if step else drawn


CASES = st.builds(
    SamplingParams,
    temperature=st.sampled_from([1e-4, 0.3, 0.8, 1.0, 2.5]),
    top_k=st.sampled_from([0, 1, 7, SMALL - 1, SMALL, 3000]),
    top_p=st.sampled_from([1e-6, 0.25, 0.5, 0.9, 0.999, 1.0]),
    min_p=st.sampled_from([0.0, 0.03]),
)


@hypothesis.settings(max_examples=300)
@given(CASES, st.sampled_from([0.0, 1.0, 4.0]), st.sampled_from([0.0, 0.5, 2.0]), st.integers(0, 2**31))
def test_laws_are_those_of_a_full_sort(params, spread, step, seed):
    logits = logits_of(3, SMALL, spread=spread, step=step, seed=seed)
    assert same(rules_of(params, SMALL).probabilities(logits), by_sorting(logits, params))


@hypothesis.settings(max_examples=60)
@given(CASES, st.sampled_from([0.01, 1.0, 6.0]), st.sampled_from([0.0, 0.125]), st.integers(0, 2**31))
def test_laws_are_those_of_a_full_sort_whether_few_words_hold_what_stays_or_many(params, spread, step, seed):
    logits = logits_of(3, LARGE, spread=spread, step=step, seed=seed)
    logits[1] *= 8  # a sure row beside unsure ones
    assert same(rules_of(params, LARGE).probabilities(logits), by_sorting(logits, params))


@pytest.mark.parametrize("spread", [0.0, 0.1, 3.0])
def test_a_row_has_the_same_law_alone_and_among_others(spread):
    params = SamplingParams(temperature=0.9, top_p=0.95)
    logits = torch.cat([logits_of(2, LARGE, spread=each, step=0.0, seed=1) for each in (spread, 8.0)])
    together = rules_of(params, LARGE).probabilities(logits)
    for row in range(4):
        assert torch.equal(together[row], rules_of(params, LARGE).probabilities(logits[row : row + 1])[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logits_are_left_as_they_were(dtype):
    logits = logits_of(2, SMALL, spread=2.0, step=0.0, seed=3).to(dtype)
    before = logits.clone()
    rules_of(SamplingParams(temperature=0.5, top_k=9, top_p=0.8, min_p=0.1), SMALL).probabilities(logits)
    assert torch.equal(logits, before)


def seconds(law: Callable[[], torch.Tensor]) -> float:
    taken = []
    for _ in range(5):
        begun = process_time()
        law()
        taken.append(process_time() - begun)
    return min(taken)


@pytest.mark.parametrize(("spread", "times"), [(3.0, 4), (1.0, 2)], ids=["few words stay", "thousands stay"])
def test_the_words_that_stay_are_found_several_times_faster_than_by_a_full_sort(spread, times):
    logits = logits_of(4, 49152, spread=spread, step=0.0, seed=4)
    params = SamplingParams(temperature=0.8, top_p=0.9)
    rules = rules_of(params, 49152)
    assert times * seconds(lambda: rules.probabilities(logits)) < seconds(lambda: by_sorting(logits, params))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("step", [0.0, 0.125])
def test_on_a_gpu_the_law_is_the_same_and_no_question_is_asked(step):
    params = SamplingParams(temperature=0.8, top_k=5000, top_p=0.9, min_p=0.001)
    logits = logits_of(4, LARGE, spread=2.0, step=step, seed=5)
    rules, there = rules_of(params, LARGE, torch.device("cuda")), logits.cuda()
    torch.cuda.set_sync_debug_mode("error")
    found = rules.probabilities(there)
    torch.cuda.set_sync_debug_mode("default")
    assert same(found.cpu(), by_sorting(logits, params))
