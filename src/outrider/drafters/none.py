"""No drafts: plain decoding, a tree of the anchor alone."""

from typing import Self

from outrider.drafters.rounds import PlainRounds
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.tree import Proposal


class NoDrafter:
    """Proposes nothing."""

    name = "none"
    max_nodes = 0
    taps: tuple[int, ...] = ()
    draws = False

    @classmethod
    def build(cls, setting: Setting) -> Self:  # noqa: ARG003 -- the same for all drafters
        """Build it; it needs nothing."""
        return cls()

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        """Keep nothing."""

    def share(self, source: int, slot: int, count: int) -> bool:  # noqa: ARG002 -- the interface
        """Nothing is remembered of passes."""
        return True

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:  # noqa: ARG002 -- the interface
        """Return empty proposals."""
        return [Proposal()] * len(slots)

    def observe(self, committed: Committed) -> None:
        """Learn nothing."""

    def device_form(self, rows: slice) -> PlainRounds:  # noqa: ARG002 -- it remembers nothing
        """Plain rounds on the device."""
        return PlainRounds()

    def end(self, slot: int) -> None:
        """Free nothing."""
