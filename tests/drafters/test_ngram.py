"""Look-up drafts: right on texts that repeat, silent on texts that do not."""

import numpy as np
import pytest
import torch
from fakes import Free

from outrider.drafters.ngram import MAX_NODES, NgramDrafter
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.params import SamplingParams
from outrider.engine.rules import Rules
from outrider.engine.tree import Proposal

FIXED = Costs(learn=False)
RULES = Rules(SamplingParams(), 10, torch.device("cpu"))


def slot(number: int, anchor: int, max_depth: int) -> Slot:
    return Slot(number, anchor, max_depth, position=0, rules=RULES)


def accepted_of(proposal: Proposal, coming: list[int]) -> int:
    """How far a text follows the proposal."""
    node = depth = 0
    for token in coming:
        pairs = zip(proposal.tokens, proposal.parents, strict=True)
        step = next((n for n, pair in enumerate(pairs, start=1) if pair == (token, node)), 0)
        if not step:
            break
        node, depth = step, depth + 1
    return depth


def replay(prompt: list[int], text: list[int]) -> list[tuple[int, int]]:
    """Let the drafter guess along a text that is already known; nodes drafted and accepted of each round."""
    drafter = NgramDrafter()
    drafter.begin(0, tuple(prompt))
    rounds, done, anchor = [], 0, prompt[-1]
    while done < len(text):
        proposal = drafter.propose([slot(0, anchor, len(text) - done - 1)], FIXED)[0]
        accepted = accepted_of(proposal, text[done : len(text) - 1])
        rounds.append((len(proposal.tokens), accepted))
        new = text[done : done + accepted + 1]
        drafter.observe(Committed((0,), (tuple(new),), None, None, None))
        done, anchor = done + len(new), new[-1]
    drafter.end(0)
    return rounds


def random_text(words: int, size: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, words, size).tolist()


def pace(rounds: list[tuple[int, int]]) -> float:
    """Tokens a second against plain decoding, by the costs the drafter was given."""
    tokens = sum(accepted + 1 for _, accepted in rounds)
    return tokens / sum(FIXED.of(1 + nodes) for nodes, _ in rounds)


@pytest.mark.parametrize("words", [2, 5, 20, 100, 300])
def test_on_random_text_it_never_costs_more_than_it_brings(words):
    text = random_text(words, 1500, seed=words)
    assert pace(replay(text[:200], text[200:])) > 0.97


@pytest.mark.parametrize("words", [300, 1000])
def test_on_random_text_of_many_words_it_learns_to_keep_quiet(words):
    text = random_text(words, 1500, seed=words)
    late = replay(text[:200], text[200:])[-300:]
    assert sum(nodes > 0 for nodes, _ in late) <= 0.1 * len(late)


@pytest.mark.parametrize("seed", range(3))
def test_on_repeated_text_it_drafts_long_and_right(seed):
    passage = random_text(500, 60, seed)
    rounds = replay(passage, passage * 4)
    assert 1 + sum(taken for _, taken in rounds) / len(rounds) > 8


def test_it_wakes_up_when_random_text_turns_into_repetition():
    noise, passage = random_text(300, 600, seed=1), random_text(300, 50, seed=2)
    rounds = replay(noise[:50], noise[50:] + passage * 4)
    late = rounds[-20:]
    assert 1 + sum(taken for _, taken in late) / len(late) > 5


def test_places_that_disagree_make_a_tree():
    prompt = (1, 2, 3, 9, 1, 2, 4, 9, 1, 2, 5, 9, 1, 2)
    drafter = NgramDrafter()
    drafter.begin(0, prompt)
    proposal = drafter.propose([slot(0, 2, 10)], Free())[0]
    children = {t for t, parent in zip(proposal.tokens, proposal.parents, strict=True) if not parent}
    assert children == {3, 4, 5}
    assert proposal.tokens[0] == 5, "the latest of equally long matches comes first"


def test_the_longest_match_comes_first():
    #         long match: 7 8 9 -> 1        short match, later: 9 -> 2
    prompt = (7, 8, 9, 1, 0, 0, 5, 9, 2, 6, 7, 8, 9)
    drafter = NgramDrafter()
    drafter.begin(0, prompt)
    assert drafter.propose([slot(0, 9, 10)], Free())[0].tokens[0] == 1


def test_slots_do_not_see_each_others_text_and_idle_ones_get_nothing():
    drafter = NgramDrafter()
    drafter.begin(0, (1, 2, 3, 1, 2))
    drafter.begin(2, (1, 2, 4, 1, 2))
    first, idle, last = drafter.propose([slot(0, 2, 1), None, slot(2, 2, 1)], Free())
    assert (first.tokens, idle.tokens, last.tokens) == ((3,), (), (4,))


@pytest.mark.parametrize("room", [0, 1, 2, 5])
def test_it_never_drafts_deeper_than_there_is_room(room):
    drafter = NgramDrafter()
    drafter.begin(0, (1, 2, 3, 4, 5, 6, 7, 8) * 6)
    proposal = drafter.propose([slot(0, 8, room)], Free())[0]
    depths = [0]
    for parent in proposal.parents:
        depths.append(depths[parent] + 1)
    assert max(depths) == room
    assert len(proposal.tokens) <= MAX_NODES
