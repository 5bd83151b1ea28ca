"""The most probable tree of slots that are independent of each other, path by path from a heap. Free of torch.

Each path enters the heap once, after its parent or its better sibling: n nodes take n pops and at most 2 n pushes,
however many words a slot has. Source: DDTree (Ringel & Romano, arXiv 2604.12989), algorithm 1; ties by the rule of
the package.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf

from outrider.drafters.trees.nodes import Nodes

_Entry = tuple[float, int, tuple[int, ...], float, int, float]  # key, depth, ranks, log reach, parent, parent's


def best_first(
    tokens: Sequence[Sequence[int]], log_probs: Sequence[Sequence[float]], budget: int, *, spine: bool = False
) -> Nodes:
    """Take the ``budget`` first paths.

    Args:
        tokens: words of each slot, best first.
        log_probs: theirs, never rising within a slot; a word at -inf is never taken.
        budget: most nodes, the root not counted.
        spine: take the chain of best words first.
    """
    nodes = Nodes()
    heap: list[_Entry] = []

    def offer(ranks: tuple[int, ...], parent: int, above: float) -> None:
        reach = above + log_probs[len(ranks) - 1][ranks[-1]]
        if reach > -inf:
            key = -inf if spine and not any(ranks) else -reach
            heappush(heap, (key, len(ranks), ranks, reach, parent, above))

    if budget > 0 and tokens:
        offer((0,), 0, 0.0)
    while heap:
        _, depth, ranks, reach, parent, above = heappop(heap)
        nodes.tokens.append(tokens[depth - 1][ranks[-1]])
        nodes.parents.append(parent)
        nodes.log_reach.append(reach)
        if len(nodes) >= budget:
            break
        if ranks[-1] + 1 < len(tokens[depth - 1]):
            offer((*ranks[:-1], ranks[-1] + 1), parent, above)
        if depth < len(tokens):
            offer((*ranks, 0), len(nodes), reach)
    return nodes
