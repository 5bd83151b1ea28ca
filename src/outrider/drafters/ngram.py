"""N-gram look-up: what followed the last time the text looked like this, in prompt and output.

The longest match weighs most; where earlier places disagree about what follows, the proposal is a tree. Nodes are
taken best first by the estimated probability of being reached, and only as many as pay for their share of the pass:
expected tokens against its cost. Needs no weights. Source of the idea: prompt look-up decoding (Saxena 2023).
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Self

from outrider.drafters.budget import how_many_pay
from outrider.drafters.confidence import Confidence
from outrider.drafters.setting import Setting
from outrider.drafters.suffix import Match, SuffixIndex
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.tree import Proposal

MAX_NODES = 31  # with the root 32: beyond, a pass on a CPU costs as much as it can bring
MIN_REACH = 0.02  # nodes reached less often are not worth ranking
MAX_GUESSES = 3  # different successors looked at below a node


@dataclass(order=True, slots=True)
class Candidate:
    """A node that may be proposed next; ordered by how likely it is reached."""

    minus_reach: float
    order: int
    token: int = field(compare=False)
    parent: int = field(compare=False)
    depth: int = field(compare=False)
    matches: list[Match] = field(compare=False)


class NgramDrafter:
    """Looks the last tokens up in the sequence's own text."""

    name = "ngram"
    max_nodes = MAX_NODES
    taps: tuple[int, ...] = ()
    draws = False

    def __init__(self) -> None:
        self._texts: dict[int, SuffixIndex] = {}
        self._confidence: dict[int, Confidence] = {}

    @classmethod
    def build(cls, setting: Setting) -> Self:  # noqa: ARG003 -- the same for all drafters
        """Build it; it needs no weights."""
        return cls()

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        """Index the prompt."""
        self._texts[slot] = SuffixIndex(prompt)
        self._confidence[slot] = Confidence()

    def share(self, source: int, slot: int, count: int) -> bool:  # noqa: ARG002 -- the interface
        """The prompt is known already."""
        return True

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:
        """Propose for each slot the nodes that pay."""
        return [Proposal() if slot is None else self._propose(slot, costs, len(slots)) for slot in slots]

    def observe(self, committed: Committed) -> None:
        """Compare what would have been guessed with what was decided, then add it to the text."""
        for slot, tokens in zip(committed.slots, committed.tokens, strict=True):
            if slot >= 0:
                for token in tokens:
                    self._learn(slot, token)
                    self._texts[slot].append(token)

    def end(self, slot: int) -> None:
        """Forget the sequence."""
        self._texts.pop(slot, None)
        self._confidence.pop(slot, None)

    def _learn(self, slot: int, token: int) -> None:
        text, confidence = self._texts[slot], self._confidence[slot]
        for guess in _guesses(text, text.matches(), 0):
            confidence.learn(guess.length, guess.share, right=guess.token == token)

    def _propose(self, slot: Slot, costs: Costs, rows: int) -> Proposal:
        text, confidence = self._texts[slot.slot], self._confidence[slot.slot]
        nodes = _best_first(text, confidence, slot.max_depth)
        kept = nodes[: how_many_pay([-node.minus_reach for node in nodes], costs, rows)]
        reach = tuple(-n.minus_reach for n in kept)
        return Proposal(tuple(n.token for n in kept), tuple(n.parent for n in kept), reach=reach)


@dataclass(frozen=True, slots=True)
class Guess:
    """A token that followed earlier places.

    Attributes:
        share: weight of its places among all.
        length: longest match behind it, guessed tokens included.
    """

    token: int
    share: float
    length: int
    matches: list[Match]


def _guesses(text: SuffixIndex, matches: list[Match], depth: int) -> list[Guess]:
    """What stood ``depth`` after the places, weightiest first, at most MAX_GUESSES."""
    groups: dict[int, list[Match]] = {}
    for match in matches:
        if match.place + depth < len(text.tokens):
            groups.setdefault(text.tokens[match.place + depth], []).append(match)
    weights = {token: sum(match.weight for match in group) for token, group in groups.items()}
    total = sum(weights.values())
    best = sorted(groups, key=lambda token: -weights[token])[:MAX_GUESSES]
    return [Guess(token, weights[token] / total, groups[token][0].length + depth, groups[token]) for token in best]


def _best_first(text: SuffixIndex, confidence: Confidence, max_depth: int) -> list[Candidate]:
    """Nodes in the order of their probability of being reached; parents come before children."""
    heap: list[Candidate] = []
    pushed = 0

    def push(matches: list[Match], parent: int, depth: int, reach: float) -> None:
        nonlocal pushed
        for guess in _guesses(text, matches, depth):
            chance = reach * confidence.of(guess.length, guess.share)
            if chance >= MIN_REACH:
                pushed += 1
                heappush(heap, Candidate(-chance, pushed, guess.token, parent, depth + 1, guess.matches))

    nodes: list[Candidate] = []
    if max_depth > 0:
        push(text.matches(), 0, 0, 1.0)
    while heap and len(nodes) < MAX_NODES:
        node = heappop(heap)
        nodes.append(node)
        if node.depth < max_depth:
            push(node.matches, len(nodes), node.depth, -node.minus_reach)
    return nodes
