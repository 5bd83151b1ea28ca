"""What drafters over blocks have in common: when they draft, what they remember, that they learn from what came.

A subclass turns a draft into proposals, and learns from what was decided.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Self, TypeVar

from outrider.drafters.blocks import Blocks
from outrider.drafters.options import DraftOptions
from outrider.drafters.pause import Pause
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.tree import Proposal
from outrider.errors import UsageError
from outrider.models.dflash.network import DFlash, Draft

Guesses = TypeVar("Guesses")


class BlockDrafter(ABC, Generic[Guesses]):
    """A drafter over a draft network.

    Args:
        network: the draft model on its target.
        setting: slots, lengths, options.
    """

    name: ClassVar[str]
    max_nodes: int

    def __init__(self, network: DFlash, setting: Setting) -> None:
        self._network, self._options = network, setting.options
        self._adaptive = self._adapts(setting.options)
        self._depth = setting.options.tokens or network.config.max_tokens
        self.taps = network.config.taps
        self._blocks, self._pause = Blocks(network, setting), Pause()
        self._made: dict[int, Guesses] = {}
        self._costs = Costs(learn=False)

    @classmethod
    def build(cls, setting: Setting) -> Self:
        """Build it over the draft model of the setting.

        Raises:
            UsageError: there is none, or more draft tokens are wanted than a block gives.
        """
        network = setting.needed_network(cls.name)
        most, wanted = network.config.max_tokens, setting.options.tokens
        if wanted is not None and wanted > most:
            raise UsageError(
                f"Draft tokens: {wanted} wanted, but a block of {network.config.block_size} gives at most {most}."
            )
        return cls(network, setting)

    @staticmethod
    @abstractmethod
    def _adapts(options: DraftOptions) -> bool:
        """Whether it drafts as much as pays, and leaves drafting where nothing does."""

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:  # noqa: ARG002 -- it reads features, not tokens
        """Forget what the slot held."""
        self._blocks.forget(slot)
        self._made.pop(slot, None)

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:
        """Draft for each slot; empty proposals where there is no room, or where drafting rests."""
        self._costs = costs
        if self._adaptive and self._pause.resting(costs, len(slots)):
            return [Proposal() for _ in slots]
        draft = self._blocks.draft(slots)
        if draft is None:
            return [Proposal() for _ in slots]
        return self._propose(slots, draft, costs)

    @abstractmethod
    def _propose(self, slots: list[Slot | None], draft: Draft, costs: Costs) -> list[Proposal]:
        """Make proposals, and keep in ``_made`` what was guessed for each slot."""

    def observe(self, committed: Committed) -> None:
        """Remember the features of what was committed, and learn how good the guesses were."""
        self._blocks.observe(committed)
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
        self._blocks.forget(slot)
        self._made.pop(slot, None)
