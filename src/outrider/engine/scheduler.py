"""Which sequences run: admit, run, finish, cancel. Knows slots and lengths; free of torch."""

from collections import deque
from dataclasses import dataclass

from outrider.engine.sequence import Sequence
from outrider.errors import UsageError


@dataclass(frozen=True, slots=True)
class Load:
    """How full an engine is: sequences in slots and without one, and the share of all slots' rows that is in use."""

    running: int
    waiting: int
    filled: float


class Scheduler:
    """First come, first served over a fixed number of slots.

    Args:
        slots: sequences that run at once.
        max_len: tokens of a sequence, prompt and output together.
    """

    def __init__(self, *, slots: int, max_len: int) -> None:
        self.slots = slots
        self.max_len = max_len
        self._waiting: deque[Sequence] = deque()
        self._running: dict[int, Sequence] = {}

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence.

        Raises:
            UsageError: it can never fit.
        """
        wanted = len(sequence.prompt) + sequence.params.max_tokens
        if not sequence.prompt:
            raise UsageError("The prompt is empty: expected at least one token.")
        if wanted > self.max_len:
            raise UsageError(
                f"The prompt has {len(sequence.prompt)} tokens and max_tokens is {sequence.params.max_tokens}, "
                f"together {wanted}; the context holds {self.max_len}. "
                "Shorten the prompt, lower max_tokens or raise the context length."
            )
        self._waiting.append(sequence)

    def admit(self) -> list[Sequence]:
        """Give free slots, lowest first, to those that waited longest; return them."""
        admitted = []
        for slot in range(self.slots):
            if slot not in self._running and self._waiting:
                sequence = self._waiting.popleft()
                sequence.slot = slot
                self._running[slot] = sequence
                admitted.append(sequence)
        return admitted

    def prefilling(self) -> Sequence | None:
        """The sequence whose prompt is to be read next: of those that have some left, the one that waited longest."""
        unread = (s for s in self._running.values() if not s.prefilled)
        return min(unread, key=lambda s: (s.read_at, s.id), default=None)

    def running(self) -> list[Sequence]:
        """Those that have a slot."""
        return list(self._running.values())

    def idle(self) -> list[int]:
        """Slots without a sequence."""
        return [slot for slot in range(self.slots) if slot not in self._running]

    def decoding(self) -> list[Sequence | None]:
        """The batch of a round: a contiguous run of slots, None where a slot inside it is idle or still reading."""
        ready = {slot: s for slot, s in self._running.items() if s.prefilled}
        if not ready:
            return []
        return [ready.get(slot) for slot in range(min(ready), max(ready) + 1)]

    def committed(self, slot: int) -> int:
        """Committed tokens of whatever is in ``slot``."""
        return self._running[slot].committed if slot in self._running else 0

    def finish(self, sequence: Sequence) -> None:
        """Free its slot."""
        del self._running[sequence.slot]

    def cancel(self, sequence_id: int) -> Sequence | None:
        """Take a sequence out, waiting or running; return it, or None if it is not here."""
        for sequence in self._waiting:
            if sequence.id == sequence_id:
                self._waiting.remove(sequence)
                return sequence
        for sequence in self._running.values():
            if sequence.id == sequence_id:
                self.finish(sequence)
                return sequence
        return None

    @property
    def load(self) -> Load:
        """How full it is."""
        committed = sum(sequence.committed for sequence in self._running.values())
        return Load(len(self._running), len(self._waiting), committed / (self.slots * self.max_len))

    @property
    def busy(self) -> bool:
        """Whether anything waits or runs."""
        return bool(self._waiting or self._running)
