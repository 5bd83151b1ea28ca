"""The host's side of rounds that stay on the device: it starts a round before it has read the one before.

What a round decided is known to the host one round late. A sequence that turns out to have ended has then been run
once more; what that round says of it is dropped, and its slot's next sequence starts from nothing as always.
"""

from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from outrider.engine.cache import Cache
from outrider.engine.graphs import GraphedRounds, Ticket
from outrider.engine.interfaces import Target
from outrider.engine.rounds import DeviceRounds, Proposer
from outrider.engine.sequence import Sequence


@runtime_checkable
class HasDeviceForm(Protocol):
    """A drafter with a form that ``engine.rounds`` takes."""

    def device_form(self, rows: slice) -> Proposer | None:
        """Return the form for these slots; None where the options have none. It shares what the drafter remembers."""
        ...


Read = list[tuple[Sequence, list[int]]]  # what a round brought to each sequence that has not ended


@dataclass(frozen=True, slots=True)
class Form:
    """A drafter's device form for any slots, with its sizes.

    Attributes:
        make: makes it for these slots.
        depth: deepest node.
        width: nodes of a tree, root included.
    """

    make: Callable[[slice], Proposer]
    depth: int
    width: int


def form_of(drafter: object) -> Form | None:
    """Return the drafter's device form, if it has one."""
    if not isinstance(drafter, HasDeviceForm):
        return None
    one = drafter.device_form(slice(0, 1))
    if one is None:
        return None

    def make(rows: slice) -> Proposer:
        made = drafter.device_form(rows)
        assert made is not None  # noqa: S101 -- it depends on options alone
        return made

    return Form(make, one.depth, one.width)


class Ahead:
    """Starts rounds for the engine and hands out what they decided, one round late.

    Args:
        target: the model whose text is wanted.
        cache: with the prompts in it, and room for one round behind the longest text.
        form: of the drafter.
        slots: of the engine.
        idle: columns from here on no text reaches; there, rows that do not run leave what they leave.
        device: where it all lives.

    Attributes:
        drafted, depth: guesses of a round, and how deep they reach.
    """

    def __init__(
        self, target: Target, cache: Cache, form: Form, *, slots: int, idle: int, device: torch.device
    ) -> None:
        self._target, self._cache, self._form, self._device = target, cache, form, device
        self._slots, self._idle = slots, idle
        self.drafted, self.depth = form.width - 1, form.depth
        self._rounds: dict[int, tuple[GraphedRounds, Proposer]] = {}
        self._running: tuple[int, list[int | None]] = (0, [])  # batch, and whose row each is there
        self._pending: tuple[Ticket, list[Sequence | None], Proposer] | None = None

    @staticmethod
    def takes(batch: Many[Sequence | None]) -> bool:
        """Whether all rows are greedy, and nothing is asked of them but their tokens."""
        return all(
            s is None or (s.params.greedy and not s.params.edits_logits and s.params.logprobs is None) for s in batch
        )

    def forget(self) -> None:
        """Rounds of another kind come in between: what the device holds of lengths and anchors is out of date."""
        self._running = (0, [])

    def launch(self, batch: Many[Sequence | None], first: int) -> Read:
        """Start a round for the slots from ``first`` on, and return what the one before brought.

        Where the batch has another size than the one before, that is read first, and nothing is started.

        Args:
            batch: as the scheduler gives it; those that started since the last round are known to the host whole.
            first: slot of the first row.
        """
        rows: list[Sequence | None] = [*[None] * first, *batch]
        size = min(self._slots, 1 << (len(rows) - 1).bit_length())
        rows += [None] * (size - len(rows))
        if self._pending is not None and self._running[0] != size:
            return self.drain()
        graphed, proposer = self._of(size)
        self._line_up(graphed.rounds, rows, size)
        ticket, before = graphed.launch(), self._pending
        self._pending = (ticket, rows, proposer)
        return [] if before is None else _read(before)

    def drain(self) -> Read:
        """Return what the last round brought, if it is not read yet."""
        before, self._pending = self._pending, None
        return [] if before is None else _read(before)

    def _of(self, size: int) -> tuple[GraphedRounds, Proposer]:
        """Rounds of so many slots, made when they are first wanted."""
        if size not in self._rounds:
            rows = slice(0, size)
            proposer = self._form.make(rows)
            rounds = DeviceRounds(self._target, self._cache, proposer, rows, self._device, idle=self._idle)
            self._rounds[size] = GraphedRounds(rounds), proposer
        return self._rounds[size]

    def _line_up(self, rounds: DeviceRounds, rows: list[Sequence | None], size: int) -> None:
        """Begin rows that are new there and end those that are gone; the others go on from where they are."""
        known = self._running[1] if self._running[0] == size else [None] * size
        if self._running[0] != size:
            rounds.end_all()
        wanted = [None if row is None else row.id for row in rows]
        for index, (row, before) in enumerate(zip(rows, known, strict=True)):
            if row is not None and row.id != before:
                rounds.begin(index, row.anchor, row.committed)
            elif row is None and before is not None:
                rounds.end(index)
        self._running = (size, wanted)


def _read(pending: tuple[Ticket, list[Sequence | None], Proposer]) -> Read:
    ticket, batch, proposer = pending
    brought = [
        (sequence, tokens) if sequence is not None and sequence.finish_reason is None else None
        for sequence, tokens in zip(batch, ticket.read(), strict=True)
    ]
    # Of a sequence that has ended nothing is counted: its slot may be another's by now.
    proposer.took([0 if one is None else len(one[1]) for one in brought])
    return [one for one in brought if one is not None]
