"""How far a drafter's tree can be believed, learnt from the nodes that were tested. Free of torch.

A node is tested when its parent is right: then it is right too, or not. The slots of a block do not know which
branch they continue, so words below any but the best one come true far less often than the drafter thinks; they are
counted apart.
"""

from outrider.drafters.calibration import Calibration
from outrider.drafters.trees.nodes import Nodes


class Belief:
    """Calibrates the nodes on the chain of best words with its children, and those below other nodes."""

    def __init__(self) -> None:
        self._along, self._beside = Calibration(), Calibration()

    def reach(self, nodes: Nodes) -> list[float]:
        """Probability that each node is reached."""
        reach = [1.0]
        for parent, probability, beside in zip(nodes.parents, nodes.conditionals(), nodes.beside_spine(), strict=True):
            reach.append(reach[parent] * self._of(beside).of(probability))
        return reach[1:]

    def learn(self, nodes: Nodes, decided: tuple[int, ...]) -> None:
        """Follow the decided tokens through the tree; all children of the nodes they pass were tested."""
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(nodes.parents, start=1):
            children.setdefault(parent, []).append(node)
        conditionals, beside_spine = nodes.conditionals(), nodes.beside_spine()
        at = 0
        for token in decided:
            tested, at = children.get(at, []), -1
            for node in tested:
                right = nodes.tokens[node - 1] == token
                self._of(beside_spine[node - 1]).learn(conditionals[node - 1], right=right)
                if right:
                    at = node
            if at < 0:
                return

    def _of(self, beside: bool) -> Calibration:  # noqa: FBT001 -- chooses between two
        return self._beside if beside else self._along
