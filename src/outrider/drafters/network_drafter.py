"""What drafters with a network have in common: when they draft, what they remember, that they learn from what came.

A subclass turns a draft into proposals, and learns from what was decided.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar

from outrider.drafters.options import DraftOptions
from outrider.drafters.pause import Pause
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.tree import Proposal

Guesses = TypeVar("Guesses")
Drafted = TypeVar("Drafted")
Drafted_co = TypeVar("Drafted_co", covariant=True)


class Memory(Protocol[Drafted_co]):
    """A network with what it remembers of each slot."""

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        """A sequence starts in the slot."""
        ...

    def share(self, source: int, slot: int, count: int) -> bool:
        """Take over what is remembered of a beginning; False where that is not possible."""
        ...

    def observe(self, committed: Committed) -> None:
        """Remember what was committed."""
        ...

    def forget(self, slot: int) -> None:
        """The sequence in the slot is over."""
        ...

    def draft(self, slots: list[Slot | None]) -> Drafted_co | None:
        """Run the network for a batch; None where no slot has room for a guess."""
        ...


class NetworkDrafter(ABC, Generic[Guesses, Drafted]):
    """A drafter over a network.

    Args:
        memory: the network with what it remembers.
        options: what the user said.
    """

    name: ClassVar[str]
    max_nodes: int

    def __init__(self, memory: Memory[Drafted], options: DraftOptions) -> None:
        self._memory, self._options = memory, options
        self._adaptive = self._adapts(options)
        self._pause = Pause()
        self._made: dict[int, Guesses] = {}
        self._costs = Costs(learn=False)

    @staticmethod
    @abstractmethod
    def _adapts(options: DraftOptions) -> bool:
        """Whether it drafts as much as pays, and leaves drafting where nothing does."""

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        """Forget what the slot held."""
        self._memory.begin(slot, prompt)
        self._made.pop(slot, None)

    def share(self, source: int, slot: int, count: int) -> bool:
        """Take over what the network remembers of a beginning."""
        return self._memory.share(source, slot, count)

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:
        """Draft for each slot; empty proposals where there is no room, or where drafting rests."""
        self._costs = costs
        if self._adaptive and self._pause.resting(costs, len(slots)):
            return [Proposal() for _ in slots]
        draft = self._memory.draft(slots)
        if draft is None:
            return [Proposal() for _ in slots]
        return self._propose(slots, draft, costs)

    @abstractmethod
    def _propose(self, slots: list[Slot | None], draft: Drafted, costs: Costs) -> list[Proposal]:
        """Make proposals, and keep in ``_made`` what was guessed for each slot."""

    def observe(self, committed: Committed) -> None:
        """Remember what was committed, and learn how good the guesses were."""
        self._memory.observe(committed)
        if self._made:
            brought = [len(tokens) for slot, tokens in zip(committed.slots, committed.tokens, strict=True) if slot >= 0]
            cost = self._costs.of(committed.tree.width, len(committed.slots))
            self._pause.learn(sum(brought) / len(brought) - cost)
        for slot, tokens in zip(committed.slots, committed.tokens, strict=True):
            if slot in self._made:
                self._learn(self._made[slot], tokens)
        self._made.clear()

    @abstractmethod
    def _learn(self, made: Guesses, tokens: tuple[int, ...]) -> None:
        """Compare guesses with what was decided."""

    def end(self, slot: int) -> None:
        """Forget the sequence."""
        self._memory.forget(slot)
        self._made.pop(slot, None)
