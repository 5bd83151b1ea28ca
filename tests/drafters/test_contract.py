"""What every drafter of the table owes the engine."""

import numpy as np
import pytest
from engine.running import drafter_of, engine_of, finish, tiny_target
from fakes import Free

from outrider.engine.costs import Costs
from outrider.engine.params import SamplingParams
from outrider.engine.tree import Proposal
from outrider.registry import DRAFTERS

VOCAB = 7  # few words, so that look-ups find something
TARGET = tiny_target(VOCAB, seed=4)


class Spy:
    """Stands between engine and drafter and checks each proposal."""

    def __init__(self, drafter) -> None:
        self._drafter = drafter
        self.proposed = 0

    def __getattr__(self, name):
        return getattr(self._drafter, name)

    def propose(self, slots, costs) -> list[Proposal]:
        proposals = self._drafter.propose(slots, costs)
        assert len(proposals) == len(slots)
        for slot, proposal in zip(slots, proposals, strict=True):
            self.check(slot, proposal)
        return proposals

    def check(self, slot, proposal: Proposal) -> None:
        proposal.check()
        assert slot is not None or not proposal.tokens
        assert len(proposal.tokens) <= self._drafter.max_nodes
        assert all(0 <= token < VOCAB for token in proposal.tokens)
        depths = [0]
        for parent in proposal.parents:
            depths.append(depths[parent] + 1)
        assert max(depths) <= (slot.max_depth if slot else 0)
        self.proposed += len(proposal.tokens)


def requests() -> list:
    generator = np.random.default_rng(1)
    return [
        (
            tuple(generator.integers(0, VOCAB, size).tolist()),
            SamplingParams(temperature=0.8, seed=size, max_tokens=int(generator.integers(1, 30))),
        )
        for size in (1, 2, 9, 20, 33)
    ]


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("costs", [Free(), Costs(learn=False)], ids=["free", "prior"])
def test_proposals_are_legal_trees_within_the_room_and_the_number_of_nodes(name, costs):
    spy = Spy(drafter_of(name, TARGET, slots=2))
    finish(engine_of(TARGET, spy, slots=2, costs=costs), requests())
    assert spy.proposed > 0 or spy.max_nodes == 0


@pytest.mark.parametrize("name", DRAFTERS)
def test_a_drafter_is_named_as_in_the_table(name):
    assert drafter_of(name, TARGET, slots=2).name == name


@pytest.mark.parametrize("name", DRAFTERS)
def test_a_slot_used_again_starts_afresh(name):
    drafter = drafter_of(name, TARGET, slots=2)
    engine = engine_of(TARGET, drafter, costs=Free())
    first, *_, last = finish(engine, [requests()[3], requests()[2], requests()[3]])
    assert first.output == last.output
    assert first.rounds == last.rounds
