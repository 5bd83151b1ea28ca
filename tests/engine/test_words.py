"""The best words by chunks are the best words of whole rows."""

import pytest
import torch

from outrider.engine.words import best_word, best_words


@pytest.mark.parametrize("words", [3, 28, 5000, 128 * 40, 128 * 40 + 1, 128 * 41 - 1])
@pytest.mark.parametrize("count", [1, 2, 16])
@pytest.mark.parametrize("step", [1e-3, 1.0], ids=["distinct", "ties"])
def test_the_best_words_of_rows_come_best_first_each_once(words, count, step):
    generator = torch.Generator().manual_seed(words + count)
    for _ in range(10):
        logits = (torch.randn(2, 3, words, generator=generator) / step).round() * step
        values, places = best_words(logits, count)
        assert torch.equal(values, logits.topk(min(count, words), -1).values)
        assert torch.equal(values, logits.gather(-1, places))
        assert all(len(set(row)) == len(row) for row in places.flatten(0, 1).tolist())


@pytest.mark.parametrize("place", [0, 127, 128, 5119, 5120, 5130])
def test_the_best_word_is_found_wherever_it_stands(place):
    logits = torch.zeros(5131)
    logits[place] = 1
    assert best_word(logits).item() == place
    assert best_words(logits, 1)[1].item() == place
    assert best_words(logits, 4)[1][0].item() == place


@pytest.mark.parametrize("words", [3, 128, 255, 256, 5000, 128 * 41 - 1])
def test_of_equally_good_words_the_first_is_the_best(words):
    generator = torch.Generator().manual_seed(words)
    logits = torch.randint(0, 4, (50, 2, words), generator=generator).float()
    assert torch.equal(best_word(logits), (logits == logits.amax(-1, keepdim=True)).int().argmax(-1))
