"""The nodes of a built tree, on the host, in the order in which they were taken. Free of torch."""

from dataclasses import dataclass, field
from math import exp


@dataclass(frozen=True, slots=True)
class Nodes:
    """A tree of which every beginning is a tree.

    Attributes:
        tokens: of node 1, 2, ...; the root is not listed.
        parents: of node 1, 2, ... (0 is the root).
        log_reach: log-probability of each node's path by the drafter.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    log_reach: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        """Count the nodes, the root not among them."""
        return len(self.tokens)

    def conditionals(self) -> list[float]:
        """Probability of each node, its parent being right."""
        above = (0.0, *self.log_reach)
        return [exp(reach - above[parent]) for reach, parent in zip(self.log_reach, self.parents, strict=True)]

    def beside_spine(self) -> list[bool]:
        """Whether each node hangs on one that is off the chain of best words; a node's first child is its best."""
        tip = 0
        spine = {tip}
        beside = []
        for node, parent in enumerate(self.parents, start=1):
            beside.append(parent not in spine)
            if parent == tip:
                tip = node
                spine.add(tip)
        return beside
