"""Prompts that begin as a text in the cache take it over, from ended sequences and from those that run.

Only where the cache is keys and values alone (a recurrent state stands for all it has read, and cannot be cut), and
where the drafter can take over what it remembers, too.
"""

from collections.abc import Iterable

from outrider.engine.interfaces import Drafter
from outrider.engine.prefixes import LEAST, Kept, common
from outrider.engine.scheduler import Scheduler
from outrider.engine.sequence import Sequence
from outrider.engine.step import Stepper


class Reuse:
    """What of the cache can be used again.

    Args:
        stepper: over the cache.
        drafter: remembers beside it.
        scheduler: knows who runs where.
    """

    def __init__(self, stepper: Stepper, drafter: Drafter, scheduler: Scheduler) -> None:
        self._stepper, self._drafter, self._scheduler = stepper, drafter, scheduler
        self._kept = Kept()

    def make_room(self, sequence: Sequence) -> None:
        """Before a sequence begins: its slot's text moves to an idle one, for the low slots are used most."""
        source, _ = self._kept.longest(sequence.prompt)
        slot, text = sequence.slot, self._kept.of(sequence.slot)
        if source == slot or not text:
            return
        place = self._kept.place_for([other for other in self._scheduler.idle() if other != source])
        if place is not None and self._drafter.share(slot, place, len(text)):
            self._drafter.end(place)
            self._stepper.share(slot, place, len(text))
            self._kept.keep(place, text)

    def begin(self, sequence: Sequence) -> None:
        """A sequence has its slot: it takes over the text that shares most with its prompt."""
        source, count = self._kept.longest(sequence.prompt)
        if count:
            self._take_over(sequence, source, count)
        self._kept.drop(sequence.slot)

    def look_beside(self, sequence: Sequence) -> None:
        """Take over what one beside it has read meanwhile: choices of one request read their prompt once."""
        if not self._stepper.shares:
            return
        others = [other for other in self._scheduler.running() if other.slot != sequence.slot]
        shared = {other.slot: common(other.in_cache, sequence.prompt) for other in others}
        best = max(shared, key=lambda slot: shared[slot], default=-1)
        if best >= 0 and shared[best] >= sequence.committed + LEAST:
            self._take_over(sequence, best, shared[best])

    def _take_over(self, sequence: Sequence, source: int, count: int) -> None:
        if self._drafter.share(source, sequence.slot, count):
            self._stepper.share(source, sequence.slot, count)
            sequence.committed = sequence.reused = count

    def keep(self, sequence: Sequence) -> None:
        """A sequence has ended and leaves its text."""
        if self._stepper.shares:
            self._kept.keep(sequence.slot, sequence.in_cache)

    def written_over(self, slots: Iterable[int]) -> None:
        """A round ran over these slots: what idle ones among them kept is gone."""
        for slot in slots:
            self._kept.drop(slot)
