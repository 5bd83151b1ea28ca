"""Slots of a running engine against a fresh pass over their texts."""

import pytest
import torch
from engine.running import engine_of

from outrider.engine.cache import Cache
from outrider.engine.engine import Engine
from outrider.engine.sequence import Sequence
from outrider.engine.tree import DraftTree
from outrider.engine.walk import whole

TOLERANCE = 1e-4


@torch.inference_mode()
def fresh(target, text, taps=()):
    cache = target.new_cache(slots=1, max_len=len(text))
    tree = DraftTree.chain(torch.tensor([text]))
    rows = slice(0, 1)
    out = target.forward(tree, cache, rows, torch.tensor([0]), span=len(text), taps=taps)
    cache.commit(rows, torch.tensor([0]), whole(tree).path_BN, tree.counts_B, in_place=True)
    return cache, out


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert found.shape == wanted.shape
    assert float((found - wanted).abs().max()) <= TOLERANCE * float(wanted.abs().max())


def watched_cache(target, engine_options) -> tuple[Engine, Cache]:
    """An engine, and the cache that it asked the target for."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        new_cache = target.new_cache
        patch.setattr(target, "new_cache", lambda **sizes: made.append(new_cache(**sizes)) or made[0])
        engine = engine_of(target, **engine_options)
    return engine, made[0]


def check_slot(target, cache: Cache, sequence: Sequence) -> None:
    done = sequence.committed
    if not done:
        return
    wanted, _ = fresh(target, [*sequence.prompt, *sequence.output][:done])
    rows = slice(sequence.slot, sequence.slot + 1)
    for layer in cache.layers:
        found = cache.read(layer, rows, slice(done))
        for ours, theirs in zip(found, wanted.read(layer, slice(1), slice(done)), strict=True):
            close(ours, theirs)
    # The round that ends a text may have kept a path beyond its end: rows do not mind, a state does.
    for layer in target.config.delta_layers if sequence.finish_reason is None else ():
        for ours, theirs in zip(cache.states.read(layer, rows), wanted.states.read(layer, slice(1)), strict=True):
            close(ours, theirs)
