"""Sampled texts follow the target's law with every kind of draft model, as chain and as tree, cut short or whole.

Chi-square against enumeration as in tests/engine/test_distribution.py; each comparison fails falsely for fresh seeds
once in 10,000, and there are 40 of them. Seeds are fixed.
"""

import pytest
from engine.law import SLOTS, TARGET, TEXTS, follows, sample
from engine.running import tiny_network

from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.models.dflash.config import Confidence, Convolution, Markov, Selector
from outrider.registry import DRAFTERS, resolve

KINDS = {
    "dflash": {},
    "dflash2": {"kind": "dflash2", "convolution": Convolution(2, 4), "selector": Selector(4, 3)},
    "vanilla": {"kind": "dspark", "markov": Markov(4, "vanilla"), "anchor_predicts": True},
    "gated": {"kind": "dspark", "markov": Markov(4, "gated"), "confidence": Confidence(with_markov=True)},
    "rnn": {"kind": "dspark", "markov": Markov(4, "rnn"), "anchor_predicts": True},
}
WAYS = {
    "drawn": ("dflash", {"tokens": 3}),
    "drawn, as many as pay": ("dflash", {}),
    "best": ("dflash", {"tokens": 3, "sampled": False}),
    "tree": ("ddtree", {"budget": 6}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_law_is_unchanged(kind, way):
    name, options = WAYS[way]
    network = tiny_network(TARGET, **KINDS[kind])
    setting = Setting(SLOTS, 16, network, DraftOptions(**options))
    settings = "cut" if kind in {"dflash", "rnn"} else "penalties"
    texts, accepted = sample(settings, resolve("drafter", DRAFTERS, name).build(setting), Costs(learn=False))
    assert accepted > TEXTS / 10
    assert follows(settings, texts)
