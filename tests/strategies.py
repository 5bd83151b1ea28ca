"""Hypothesis strategies for what the engine takes: proposals, decisions, laws."""

from itertools import pairwise

from hypothesis import strategies as st

from outrider.engine.tree import Proposal


@st.composite
def proposals(draw, vocab: int = 6, max_nodes: int = 10) -> Proposal:
    """Any legal tree: a parent before its children, siblings with distinct tokens."""
    taken: dict[int, set[int]] = {0: set()}
    tokens, parents = [], []
    for node in range(1, 1 + draw(st.integers(0, max_nodes))):
        open_parents = [parent for parent, used in taken.items() if len(used) < vocab]
        parent = draw(st.sampled_from(open_parents))
        free = [token for token in range(vocab) if token not in taken[parent]]
        token = draw(st.sampled_from(free))
        taken[parent].add(token)
        taken[node] = set()
        tokens.append(token)
        parents.append(parent)
    return Proposal(tuple(tokens), tuple(parents))


@st.composite
def batches(draw, vocab: int = 6, max_nodes: int = 10, max_rows: int = 4):
    """Anchors and proposals of a batch."""
    rows = draw(st.integers(1, max_rows))
    token = st.integers(0, vocab - 1)
    anchors = draw(st.lists(token, min_size=rows, max_size=rows))
    return anchors, [draw(proposals(vocab, max_nodes)) for _ in range(rows)]


@st.composite
def parts(draw, words: int, whole: int) -> tuple[int, ...]:
    """A law over ``words`` in multiples of 1/whole; some words may have none."""
    cuts = sorted(draw(st.lists(st.integers(0, whole), min_size=words - 1, max_size=words - 1)))
    edges = [0, *cuts, whole]
    return tuple(high - low for low, high in pairwise(edges))
