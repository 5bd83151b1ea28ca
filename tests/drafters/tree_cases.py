"""Slots with words of given log-probabilities, and their trees by enumeration of every path."""

from itertools import product
from math import inf

import numpy as np
from hypothesis import strategies as st

from outrider.drafters.trees.nodes import Nodes

Ranks = tuple[int, ...]
Slots = list[list[float]]


def tokens_of(slots: Slots) -> list[list[int]]:
    """Words that tell their slot and rank."""
    return [[100 * (depth + 1) + rank for rank in range(len(slot))] for depth, slot in enumerate(slots)]


def paths_of(nodes: Nodes) -> list[Ranks]:
    """Each node's path in ranks, read from tokens and parents alone."""
    paths: list[Ranks] = [()]
    for token, parent in zip(nodes.tokens, nodes.parents, strict=True):
        path = (*paths[parent], token % 100)
        assert token // 100 == len(path), "a word stands at the depth of another slot"
        paths.append(path)
    return paths[1:]


def enumerated(slots: Slots, budget: int, *, spine: bool = False) -> dict[Ranks, float]:
    """The first paths by the rule, with their log-probabilities."""
    scores: dict[Ranks, float] = {}
    for depth in range(1, len(slots) + 1):
        for ranks in product(*(range(len(slot)) for slot in slots[:depth])):
            scores[ranks] = sum((slot[rank] for slot, rank in zip(slots, ranks, strict=False)), start=0.0)

    def key(ranks: Ranks) -> tuple[bool, float, int, Ranks]:
        on_spine = spine and not any(ranks)
        return not on_spine, 0.0 if on_spine else -scores[ranks], len(ranks), ranks

    real = [ranks for ranks, score in scores.items() if score > -inf]
    return {ranks: scores[ranks] for ranks in sorted(real, key=key)[:budget]}


def random_slots(generator: np.random.Generator, depth: int, words: int) -> Slots:
    """Laws of random sharpness, cut to their best words; often with ties, certain words and impossible ones."""
    logits = generator.normal(size=(depth, words + 3)) * generator.choice([0.3, 2.0, 6.0], size=(depth, 1))
    if generator.random() < 0.6:
        logits = logits.round()
    log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    if generator.random() < 0.3:
        log_probs[generator.integers(depth)] = np.log(np.eye(words + 3)[0] + 1e-300).clip(max=0)
    if generator.random() < 0.2:
        log_probs[generator.integers(depth), 1:] = -inf
    return (-np.sort(-log_probs, axis=1))[:, :words].tolist()


# Few values and few words: most cases have ties, within a slot and between depths.
LOG_PROBS = st.sampled_from([0.0, -0.25, -0.5, -1.0, -2.0, -inf])


@st.composite
def slots(draw) -> Slots:
    words = draw(st.integers(1, 3))
    slot = st.lists(LOG_PROBS, min_size=words, max_size=words).map(lambda values: sorted(values, reverse=True))
    return draw(st.lists(slot, min_size=1, max_size=4))
