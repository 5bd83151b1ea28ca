"""The scheduler against a model of it: a queue and a set of free slots."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from outrider.engine.params import SamplingParams
from outrider.engine.scheduler import Scheduler
from outrider.engine.sequence import Sequence
from outrider.errors import UsageError

SLOTS, MAX_LEN = 3, 12


def sequence(number: int, prompt: int = 3, max_tokens: int = 4) -> Sequence:
    return Sequence(number, tuple(range(prompt)), SamplingParams(max_tokens=max_tokens))


class Model(RuleBasedStateMachine):
    """Commands in any order; the queue's order and the slots' holders are kept beside the scheduler."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(slots=SLOTS, max_len=MAX_LEN)
        self.queue: list[Sequence] = []
        self.slots: dict[int, Sequence] = {}
        self.number = 0

    @rule(prompt=st.integers(1, 8), max_tokens=st.integers(1, 4))
    def add(self, prompt: int, max_tokens: int) -> None:
        added = sequence(self.number, prompt, max_tokens)
        self.number += 1
        self.scheduler.add(added)
        self.queue.append(added)

    @rule()
    def admit(self) -> None:
        free = [slot for slot in range(SLOTS) if slot not in self.slots]
        due = self.queue[: len(free)]
        assert self.scheduler.admit() == due
        assert [s.slot for s in due] == free[: len(due)]
        self.queue = self.queue[len(due) :]
        self.slots.update({s.slot: s for s in due})

    @precondition(lambda self: any(not s.prefilled for s in self.slots.values()))
    @rule(count=st.integers(1, 3))
    def read(self, count: int) -> None:
        reading = self.scheduler.prefilling()
        assert reading.id == min(s.id for s in self.slots.values() if not s.prefilled)
        reading.committed = min(reading.committed + count, len(reading.prompt) - 1)

    @precondition(lambda self: any(s.prefilled for s in self.slots.values()))
    @rule(data=st.data())
    def decode(self, data) -> None:
        ready = [s for s in self.slots.values() if s.prefilled]
        one = data.draw(st.sampled_from(ready))
        ended = one.take(0)
        one.committed = one.length - 1
        if ended:
            self.scheduler.finish(one)
            del self.slots[one.slot]

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def cancel(self, data) -> None:
        number = data.draw(st.integers(0, self.number - 1))
        here = [*self.queue, *self.slots.values()]
        wanted = next((s for s in here if s.id == number), None)
        assert self.scheduler.cancel(number) is wanted
        self.queue = [s for s in self.queue if s is not wanted]
        self.slots = {slot: s for slot, s in self.slots.items() if s is not wanted}

    @invariant()
    def agree(self) -> None:
        assert self.scheduler.busy == bool(self.queue or self.slots)
        ready = {slot: s for slot, s in self.slots.items() if s.prefilled}
        batch = self.scheduler.decoding()
        if not ready:
            assert batch == []
            return
        assert batch == [ready.get(slot) for slot in range(min(ready), max(ready) + 1)]
        for slot in range(SLOTS):
            holder = self.slots.get(slot)
            assert self.scheduler.committed(slot) == (holder.committed if holder else 0)

    def teardown(self) -> None:
        for _ in range(200):
            self.admit()
            while self.scheduler.prefilling() is not None:
                self.read(3)
            for one in list(self.slots.values()):
                if one.take(0):
                    self.scheduler.finish(one)
                    del self.slots[one.slot]
                one.committed = one.length - 1
        assert not self.scheduler.busy


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=25, stateful_step_count=40, derandomize=True, deadline=None)


def test_a_sequence_that_just_fits_is_taken_and_one_token_more_is_not():
    scheduler = Scheduler(slots=1, max_len=MAX_LEN)
    scheduler.add(sequence(0, prompt=8, max_tokens=4))
    with pytest.raises(UsageError, match="13") as caught:
        scheduler.add(sequence(1, prompt=8, max_tokens=5))
    assert "\n" not in str(caught.value)


def test_an_empty_prompt_is_refused():
    with pytest.raises(UsageError, match="empty"):
        Scheduler(slots=1, max_len=MAX_LEN).add(sequence(0, prompt=0))
