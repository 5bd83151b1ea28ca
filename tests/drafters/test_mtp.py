"""Multi-token prediction heads: the guesses of Transformers' parts, whatever was accepted before; texts unchanged."""

import math

import fakes
import pytest
import torch
from engine.law import MODELS, SLOTS, follows, sample
from engine.running import drafter_of, engine_of, finish, plain
from models.heads import guesses_of, logits_along, random_heads
from models.peers import make_pair

from outrider.drafters import mtp, mtp_tree
from outrider.drafters.depths import Depths
from outrider.drafters.mtp import MTPDrafter
from outrider.drafters.mtp_tree import MTPTreeDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine import engine as engine_module
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.errors import UsageError

PROMPTS = ((3, 5, 9, 1, 1, 1, 4), (5,), (11, 12) * 6, (96, 0, 50))
GREEDY = SamplingParams(max_tokens=18)


@pytest.fixture(scope="module")
def pair():
    return make_pair("qwen3_5")


@pytest.fixture(scope="module")
def heads(pair):
    return random_heads(pair)


def build(network, *, slots=1, **options):
    return MTPDrafter.build(Setting(slots, 96, options=DraftOptions(**options), heads=lambda: network))


class Watched:
    """Compares each proposal with the reference, from the text as it stands."""

    def __init__(self, drafter, check) -> None:
        self._drafter, self._check = drafter, check
        self.engine: Engine | None = None
        self.checked = 0

    def __getattr__(self, name):
        return getattr(self._drafter, name)

    def propose(self, slots, costs):
        proposals = self._drafter.propose(slots, costs)
        for slot, proposal in zip(slots, proposals, strict=True):
            if slot is not None and proposal.tokens:
                sequence = self.engine._scheduler._running[slot.slot]
                self._check([*sequence.prompt, *sequence.output], proposal, self._drafter._made[slot.slot])
                self.checked += 1
        return proposals


def play(pair, drafter, check, known) -> int:
    """Run with two slots and short chunks of prompts, some rounds accepting true words; count the checks."""
    watched = Watched(drafter, check)
    engine = engine_of(pair.ours, watched, slots=2, costs=fakes.Free())
    watched.engine = engine
    for sequence in finish(engine, [(prompt, GREEDY) for prompt in PROMPTS]):
        assert sequence.output == known[sequence.prompt]
    return watched.checked


@pytest.fixture(scope="module")
def known(pair):
    return {prompt: plain(pair.ours, prompt, GREEDY) for prompt in PROMPTS}


def test_chains_are_those_of_the_reference(pair, heads, known, monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 4)
    theirs, ours = heads

    def check(text, proposal, _made):
        assert list(proposal.tokens) == guesses_of(pair, theirs, text, len(proposal.tokens))

    assert play(pair, build(ours, slots=2, tokens=3), check, known) > 30


def test_what_was_accepted_is_taken_in_with_true_states(pair, heads, known, monkeypatch):
    """Random heads are hardly ever right: here two guesses a chain are put right, so that paths are accepted."""
    theirs, ours = heads
    right = {(*prompt, *output[:done]): output[done:] for prompt, output in known.items() for done in range(18)}
    drafter, guess = build(ours, slots=2, tokens=3), mtp.guess_chains

    def text_of(slot: int) -> list[int]:
        sequence = watched.engine._scheduler._running[slot]
        return [*sequence.prompt, *sequence.output]

    def helped(draft, slots, count, *, sampled):
        chains = guess(draft, slots, count, sampled=sampled)
        for row, (slot, chain) in enumerate(zip(slots, chains, strict=True)):
            if slot is not None and chain.tokens:
                text = text_of(slot.slot)
                wanted = logits_along(pair, theirs, text, [])[0]
                torch.testing.assert_close(draft.logits(draft.hidden_BH[row]), wanted, rtol=1e-4, atol=1e-4)
                chain.tokens[:2] = right[tuple(text)][: len(chain.tokens[:2])]
        return chains

    monkeypatch.setattr(mtp, "guess_chains", helped)
    watched = Watched(drafter, lambda _text, _proposal, _made: None)
    watched.engine = engine_of(pair.ours, watched, slots=2, costs=fakes.Free())
    sequences = finish(watched.engine, [(prompt, GREEDY) for prompt in PROMPTS])
    assert all(sequence.output == known[sequence.prompt] for sequence in sequences)
    assert sum(r.accepted for s in sequences for r in s.rounds) > 30
    assert watched.checked > 10


def test_a_trees_words_are_scored_as_the_reference_scores_their_paths(pair, heads, known, monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK", 4)
    monkeypatch.setattr(mtp_tree, "WORDS", 3)
    theirs, ours = heads

    def check(text, proposal, made):
        assert len(proposal.tokens) <= 6
        for node in range(len(made)):
            path, at = [], node + 1
            while at:
                path.insert(0, made.tokens[at - 1])
                at = made.parents[at - 1]
            laws = logits_along(pair, theirs, text, path)[:-1].log_softmax(-1)
            wanted = float(sum(law[token] for law, token in zip(laws, path, strict=True)))
            assert math.isclose(made.log_reach[node], wanted, abs_tol=1e-3)

    drafter = build(ours, slots=2, budget=6, tokens=3)
    assert isinstance(drafter, MTPTreeDrafter)
    assert play(pair, drafter, check, known) > 30


@pytest.mark.parametrize("tokens", range(1, 7))
@pytest.mark.parametrize("budget", ["auto", 5])
def test_greedy_texts_are_plain_whatever_is_guessed(pair, heads, known, tokens, budget):
    engine = engine_of(pair.ours, build(heads[1], slots=3, tokens=tokens, budget=budget), slots=3)
    for sequence in finish(engine, [(prompt, GREEDY) for prompt in PROMPTS]):
        assert sequence.output == known[sequence.prompt]
        assert max(r.depth for r in sequence.rounds) <= tokens
        assert max(r.drafted for r in sequence.rounds) <= (tokens if budget == "auto" else budget)


@pytest.mark.parametrize("options", [{"tokens": 3}, {"sampled": False}, {"budget": 6}], ids=str)
@pytest.mark.parametrize("family", MODELS)
def test_sampled_texts_follow_the_law(family, options):
    drafter = drafter_of("mtp", MODELS[family], slots=SLOTS, **options)
    texts, accepted = sample("hot", drafter, family=family)
    assert accepted > 0
    assert follows("hot", texts, family)


def test_a_drafter_without_heads_says_so():
    with pytest.raises(UsageError, match="needs the multi-token prediction heads"):
        MTPDrafter.build(Setting(1, 16))


def test_depths_learn_up_to_the_first_wrong_guess():
    depths = Depths(3)
    before = depths.reach()
    assert before == sorted(before, reverse=True)
    for _ in range(50):
        depths.learn((1, 2, 3), (1, 5))
    first, second, third = depths.reach()
    assert first > 0.9
    assert second < 0.15
    assert third == pytest.approx(second * before[0])
