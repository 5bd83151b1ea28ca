"""Words drawn for many rows at once follow each row's law."""

import numpy as np
import pytest
import torch
from scipy import stats

from outrider.engine.params import SamplingParams
from outrider.engine.rules import Rules, draw
from outrider.train.drawing import CHUNK, choose, draw_word

LOGITS = torch.tensor([2.0, 0.5, -1.0, 1.0, 0.0, -3.0, 1.5])
DRAWS = 20_000


def law(params: SamplingParams) -> np.ndarray:
    """The engine's, [V]."""
    rules = Rules(params, len(LOGITS), torch.device("cpu"))
    return rules.probabilities(LOGITS[None])[0].numpy()


def uniforms(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 1.0},
        {"temperature": 0.6},
        {"temperature": 1.0, "top_k": 3},
        {"temperature": 1.3, "top_p": 0.7},
        {"temperature": 1.3, "top_k": 4, "top_p": 0.8},
    ],
)
def test_drawn_words_follow_the_engines_law(settings):
    expected = law(SamplingParams(**settings))
    temperature = torch.full((DRAWS,), settings["temperature"])
    cuts = {key: value for key, value in settings.items() if key != "temperature"}
    words = choose(LOGITS.expand(DRAWS, -1), temperature, uniforms(DRAWS), **cuts)
    counts = np.bincount(words.numpy(), minlength=len(LOGITS))
    assert counts[expected == 0].sum() == 0
    possible = expected > 0
    assert stats.chisquare(counts[possible], expected[possible] * DRAWS).pvalue > 1e-3


def test_greedy_rows_beside_drawn_ones_take_the_best_word():
    temperature = torch.tensor([0.0, 1.0] * 500)
    words = choose(LOGITS.expand(1000, -1), temperature, uniforms(1000))
    assert set(words[::2].tolist()) == {0}
    assert len(set(words[1::2].tolist())) > 4


@pytest.mark.parametrize("size", [5, CHUNK, CHUNK + 1, 5 * CHUNK, 5 * CHUNK + 17])
def test_a_draw_in_two_steps_is_the_draw_in_one(size):
    generator = torch.Generator().manual_seed(size)
    law_BV = torch.rand(400, size, dtype=torch.float64, generator=generator) ** 8
    law_BV[:, ::3] = 0
    law_BV /= law_BV.sum(-1, keepdim=True)
    numbers = uniforms(400, seed=1)
    assert draw_word(law_BV, numbers).tolist() == draw(law_BV, numbers).tolist()


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_a_word_of_probability_zero_is_never_drawn_at_the_ends(number):
    law_BV = torch.zeros(1, 3 * CHUNK)
    law_BV[0, CHUNK + 5], law_BV[0, CHUNK + 9] = 0.25, 0.75
    drawn = draw_word(law_BV, torch.tensor([number], dtype=torch.float64))
    assert drawn.item() == (CHUNK + 5 if number == 0 else CHUNK + 9)
