"""The best words of rows of logits, several times faster on a CPU than a selection from whole rows.

A vocabulary is cut into chunks. The k chunks with the highest maxima hold the k best words (were one of them
elsewhere, each of those k maxima would be at least as good), and maxima are cheap.
"""

import torch
from torch import Tensor

_CHUNK = 128  # 15 rows of 49152 words, 16 best: 0.5 ms on one core, from whole rows 1.8 ms


def best_word(logits: Tensor) -> Tensor:
    """Places of the best words, [..., V] to [...]; of equally good ones the first."""
    chunks = logits.shape[-1] // _CHUNK
    if chunks <= 1 or logits.device.type != "cpu":
        return logits.argmax(-1)
    whole = logits[..., : chunks * _CHUNK].view(*logits.shape[:-1], chunks, _CHUNK)
    chosen = whole.amax(-1).argmax(-1, keepdim=True)
    pool = whole.gather(-2, chosen[..., None].expand(*chosen.shape, _CHUNK)).squeeze(-2)
    places = torch.cat((pool, logits[..., chunks * _CHUNK :]), -1).argmax(-1, keepdim=True)
    words = torch.where(places < _CHUNK, chosen * _CHUNK, (chunks - 1) * _CHUNK) + places
    return words.squeeze(-1)


def best_words(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Values and places of the ``count`` best words, best first: [..., V] to [..., count] each."""
    chunks = logits.shape[-1] // _CHUNK
    if chunks <= 2 * count or logits.device.type != "cpu":  # a GPU selects from whole rows as fast
        values, words = logits.topk(min(count, logits.shape[-1]), -1)
        return values, words
    whole = logits[..., : chunks * _CHUNK].view(*logits.shape[:-1], chunks, _CHUNK)
    chosen = whole.amax(-1).topk(count, -1).indices
    pool = whole.gather(-2, chosen[..., None].expand(*chosen.shape, _CHUNK)).flatten(-2)
    values, places = torch.cat((pool, logits[..., chunks * _CHUNK :]), -1).topk(count, -1)
    words = chosen.gather(-1, (places // _CHUNK).clamp(max=count - 1)) * _CHUNK + places % _CHUNK
    tail = places - count * _CHUNK
    return values, torch.where(tail >= 0, chunks * _CHUNK + tail, words)
