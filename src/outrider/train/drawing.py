"""The next word of many texts at once, each by its own temperature and its own random number.

The law is the engine's (``engine/rules.py``): temperature, top-k, top-p; and so is the draw, by inverting the
cumulative law. One number decides a word, so a text depends on its own numbers alone, not on its neighbours, and
with the engine's numbers it is the engine's text.
Shape letters: B rows, V vocabulary, C chunks of it, W words of a chunk, K words kept.
"""

import torch
from torch import Tensor
from torch.nn import functional

from outrider.engine.params import COLDEST
from outrider.engine.rules import draw
from outrider.engine.words import best_word

CHUNK = 128  # the cumulative law of whole rows would be written out: as much memory traffic as all else together


def choose(
    logits_BV: Tensor, temperature_B: Tensor, uniform_B: Tensor, *, top_k: int = 0, top_p: float = 1.0
) -> Tensor:
    """Return a word a row: the best one at temperature 0, else drawn.

    Args:
        logits_BV: float32.
        temperature_B: 0 for greedy rows.
        uniform_B: float64 in [0, 1), what decides each row.
        top_k: keep the k likeliest words; 0 keeps all.
        top_p: keep the likeliest words that hold this share.
    """
    best_B = best_word(logits_BV)
    heated_BV = logits_BV / temperature_B.clamp(min=COLDEST)[:, None]
    if top_k or top_p < 1:
        drawn_B = _draw_kept(heated_BV, uniform_B, top_k, top_p)
    else:
        drawn_B = draw_word(heated_BV.softmax(-1), uniform_B)
    return torch.where(temperature_B > 0, drawn_B, best_B)


def draw_word(law_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """Draw by the inverse of the cumulative law in two steps: a chunk of the vocabulary, then a word of it."""
    padded_BV = functional.pad(law_BV, (0, -law_BV.shape[-1] % CHUNK)) if law_BV.shape[-1] % CHUNK else law_BV
    parts_BCW = padded_BV.reshape(len(padded_BV), -1, CHUNK)
    mass_BC = parts_BCW.sum(-1, dtype=torch.float64)
    chunk_B1 = draw(mass_BC, uniform_B)[:, None]
    within_B1 = mass_BC.gather(1, chunk_B1)
    before_B1 = mass_BC.cumsum(-1).gather(1, chunk_B1) - within_B1
    rest_B1 = ((uniform_B[:, None] * mass_BC.sum(-1, keepdim=True) - before_B1) / within_B1).clamp(0, 1)
    words_BW = parts_BCW.gather(1, chunk_B1[..., None].expand(-1, 1, CHUNK))[:, 0]
    return chunk_B1[:, 0] * CHUNK + draw(words_BW.double(), rest_B1[:, 0])


def _draw_kept(heated_BV: Tensor, uniform_B: Tensor, top_k: int, top_p: float) -> Tensor:
    """Draw from the likeliest words alone; top-p without top-k has to sort whole rows."""
    size = heated_BV.shape[-1]
    values_BK, words_BK = heated_BV.topk(min(top_k or size, size), -1)
    law_BK = values_BK.softmax(-1)
    if top_p < 1:
        dropped_BK = (law_BK.cumsum(-1) - law_BK) >= top_p
        dropped_BK[:, 0] = False
        law_BK = law_BK.masked_fill(dropped_BK, 0.0)
    return words_BK.gather(1, draw(law_BK.double(), uniform_B)[:, None])[:, 0]
