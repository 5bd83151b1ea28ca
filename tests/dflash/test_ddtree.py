"""DDTree on the trained pair: the target's own text, more of it a round than a chain, whatever the budget.

Comparisons with the law as in tests/engine/law.py: twelve, each of which fails falsely for fresh seeds once in 10,000.
"""

from collections.abc import Sequence as Ordered
from dataclasses import dataclass

import pytest
import torch
from dflash.pair import BLOCK, MASK, Pair
from dflash.rounds import MAX_LEN, MOST, Prompts, acceptance, prompts_of
from engine.law import SLOTS, TARGET, TEXTS, follows, sample
from engine.running import engine_of, finish, plain, tiny_network
from fakes import Free

from outrider.drafters import ddtree
from outrider.drafters.ddtree import DDTreeDrafter
from outrider.drafters.dflash import DFlashDrafter
from outrider.drafters.none import NoDrafter
from outrider.drafters.options import Budget, DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Slot
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.errors import UsageError
from outrider.models.dflash.config import Markov, Selector
from outrider.models.dflash.network import DFlash, Draft

NEW = 32
PROMPTS = prompts_of(4, 3, 20, 9, 1)
MANY = prompts_of(64, 3, 5, 9, 20, 32)
BUDGETS: tuple[Budget, ...] = (1, 6, 31, "auto")


class Cheap(Costs):
    """A machine on which nodes cost little."""

    def of(self, width: int, rows: int = 1) -> float:
        return 1 + 0.03 * (width - 1)


def tree_drafter(network, *, slots: int = 1, **options) -> DDTreeDrafter:
    return DDTreeDrafter.build(Setting(slots, MAX_LEN, network, DraftOptions(**options)))


def run(pair: Pair, drafter, prompts: Prompts, params: SamplingParams | None = None, **options) -> list[Sequence]:
    engine = engine_of(pair.target, drafter, max_len=MAX_LEN, **options)
    return finish(engine, [(prompt, params or SamplingParams(max_tokens=NEW)) for prompt in prompts])


def texts_of(sequences: Ordered[Sequence]) -> dict[tuple[int, ...], list[int]]:
    return {sequence.prompt: sequence.output for sequence in sequences}


@pytest.fixture(scope="module")
def said(pair) -> dict[tuple[int, ...], list[int]]:
    return {prompt: plain(pair.target, prompt, SamplingParams(max_tokens=NEW)) for prompt in PROMPTS}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("slots", [1, 4])
def test_greedy_texts_are_those_of_plain_decoding(pair, said, budget, slots):
    sequences = run(pair, tree_drafter(pair.network, slots=slots, budget=budget), PROMPTS, slots=slots)
    assert texts_of(sequences) == said
    assert sum(r.accepted for s in sequences for r in s.rounds) > 20


def test_a_ragged_batch_accepts_what_each_text_accepts_alone(pair):
    together = run(pair, tree_drafter(pair.network, slots=4, budget=15), PROMPTS, slots=4)
    for sequence in together:
        (alone,) = run(pair, tree_drafter(pair.network, budget=15), [sequence.prompt])
        assert alone.rounds == sequence.rounds


@pytest.mark.parametrize(
    "settings", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.9, "frequency_penalty": 0.5}]
)
def test_a_seed_gives_the_text_of_plain_decoding_at_any_temperature(pair, settings):
    params = SamplingParams(max_tokens=NEW, seed=5, **settings)
    wanted = {prompt: plain(pair.target, prompt, params) for prompt in PROMPTS}
    for budget in BUDGETS:
        drafter = tree_drafter(pair.network, slots=3, budget=budget)
        assert texts_of(run(pair, drafter, PROMPTS, params, slots=3)) == wanted


def test_a_tree_of_as_many_nodes_accepts_more_than_a_chain_and_a_larger_one_more_again(pair):
    chain = DFlashDrafter.build(Setting(8, MAX_LEN, pair.network, DraftOptions(tokens=MOST)))
    lengths = [acceptance(run(pair, chain, MANY, slots=8)).length]
    for budget in (MOST, 15, 63):
        trees = run(pair, tree_drafter(pair.network, slots=8, budget=budget), MANY, slots=8)
        lengths.append(acceptance(trees).length)
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0] + 0.3


@pytest.mark.parametrize("slots", [1, 3])
def test_a_tree_of_best_words_alone_is_the_chain(pair, monkeypatch, slots):
    monkeypatch.setattr(ddtree, "WORDS", 1)
    setting = Setting(slots, MAX_LEN, pair.network, DraftOptions(tokens=MOST, budget=MOST))
    caches, rounds = [], []
    for drafter in (DDTreeDrafter.build(setting), DFlashDrafter.build(setting)):
        engine = engine_of(pair.target, drafter, slots=slots, max_len=MAX_LEN)
        sequences = finish(engine, [(prompt, SamplingParams(max_tokens=NEW)) for prompt in PROMPTS])
        rounds.append([(s.output, s.rounds) for s in sequences])
        caches.append((engine._stepper._cache._kv_L2SGMD[..., :-BLOCK, :], drafter._memory.cache._kv_L2SGMD))
    assert rounds[0] == rounds[1]
    for ours, theirs in zip(*caches, strict=True):
        assert torch.equal(ours, theirs)


def test_a_spine_as_long_as_the_budget_is_the_chain(pair):
    chains = DFlashDrafter.build(Setting(1, MAX_LEN, pair.network, DraftOptions(tokens=MOST)))
    found = run(pair, tree_drafter(pair.network, budget=MOST, spine=True), PROMPTS)
    for tree, chain in zip(found, run(pair, chains, PROMPTS), strict=True):
        assert tree.rounds[:-1] == chain.rounds[:-1]  # in the last there is room for siblings instead


def text_with_paths(pair: Pair) -> tuple[tuple[int, ...], list[int], list[int]]:
    """A text, and the places of its tokens that are drafted, accepted and followed by more accepted ones."""
    for prompt in MANY:
        (sequence,) = run(pair, tree_drafter(pair.network, budget=31), [prompt])
        inside, done = [], 0
        for taken in sequence.rounds:
            inside += range(done, done + max(0, taken.accepted - 1))
            done += taken.accepted + 1
        first = [place for place in inside if sequence.output.index(sequence.output[place]) == place]
        if len(first) >= 4:
            return prompt, sequence.output, first
    raise AssertionError("no text has enough tokens inside accepted paths")


def test_a_stop_token_ends_the_text_inside_an_accepted_path(pair):
    prompt, output, places = text_with_paths(pair)
    for place in places:
        params = SamplingParams(max_tokens=NEW, stop_token_ids=(output[place],))
        for budget in (31, "auto"):
            (sequence,) = run(pair, tree_drafter(pair.network, budget=budget), [prompt], params, costs=Free())
            assert sequence.output == output[: place + 1]
            assert sequence.finish_reason == "stop"


def test_max_tokens_ends_the_text_inside_a_block(pair):
    prompt, output, _ = text_with_paths(pair)
    for length in range(1, 12):
        params = SamplingParams(max_tokens=length)
        (sequence,) = run(pair, tree_drafter(pair.network, budget=31), [prompt], params)
        assert sequence.output == output[:length]
        assert sequence.finish_reason == "length"
        assert all(r.depth < length for r in sequence.rounds)


def test_a_text_may_fill_the_cache_to_its_last_row(pair):
    prompt = PROMPTS[1]
    params = SamplingParams(max_tokens=MAX_LEN - len(prompt))
    (sequence,) = run(pair, tree_drafter(pair.network, budget=63), [prompt], params)
    assert sequence.output == run(pair, NoDrafter(), [prompt], params)[0].output


@pytest.mark.parametrize("budget", [3, 12, 100])
def test_a_budget_is_the_number_of_nodes_and_tokens_the_depth(pair, budget):
    drafter = tree_drafter(pair.network, budget=budget, tokens=3)
    assert drafter.max_nodes == budget
    (sequence,) = run(pair, drafter, PROMPTS[:1])
    whole = sequence.rounds[:-3]
    assert {r.drafted for r in whole} == {budget}
    assert max(r.depth for r in whole) == min(3, budget)


def test_an_automatic_budget_is_as_large_as_pays(pair):
    drafter = tree_drafter(pair.network, slots=4)
    sequences = run(pair, drafter, PROMPTS, slots=4, costs=Cheap(learn=False))
    assert len({r.drafted for s in sequences for r in s.rounds}) > 1


@dataclass
class Stubborn:
    """A network that is sure of a word which nobody says."""

    network: DFlash

    def __getattr__(self, name: str):
        return getattr(self.network, name)

    def draft(self, *rows, **host: int) -> Draft:
        draft = self.network.draft(*rows, **host)
        draft.logits_BKV.zero_()[..., MASK] = 30
        return draft


def test_a_drafter_that_is_sure_and_wrong_is_soon_believed_less_and_then_left_alone(pair):
    params = SamplingParams(max_tokens=90)
    (sequence,) = run(pair, tree_drafter(Stubborn(pair.network)), PROMPTS[:1], params)
    drafted = [r.drafted for r in sequence.rounds]
    assert drafted[0] == MOST
    assert sum(nodes > 0 for nodes in drafted) < 45
    assert max(drafted[-45:]) <= 2


def test_reach_is_told_for_every_node_and_never_rises_along_a_path(pair):
    drafter = tree_drafter(pair.network, slots=2, budget=20)
    drafter.begin(0, (5,))
    proposal, idle = drafter.propose([Slot(0, 5, 9, 1, None), None], Free())
    assert idle.tokens == ()
    assert len(proposal.reach) == len(proposal.tokens) == 20
    above = (1.0, *proposal.reach)
    assert all(reach <= above[parent] for reach, parent in zip(proposal.reach, proposal.parents, strict=True))


KINDS = {
    "dflash": {},
    "dflash2": {"kind": "dflash2", "selector": Selector(4, 3)},
    "dspark": {"kind": "dspark", "markov": Markov(4, "rnn"), "anchor_predicts": True},
}


@pytest.mark.parametrize("spine", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_sampled_texts_follow_the_law_with_as_many_nodes_as_pay(kind, spine):
    network = tiny_network(TARGET, **KINDS[kind])
    drafter = tree_drafter(network, slots=SLOTS, spine=spine)
    settings = "penalties" if spine else "cut"
    texts, accepted = sample(settings, drafter, Cheap(learn=False))
    assert accepted > TEXTS / 10
    assert follows(settings, texts)


def test_what_cannot_be_built_is_refused(pair):
    with pytest.raises(UsageError, match="--draft-model"):
        DDTreeDrafter.build(Setting(1, MAX_LEN))
    with pytest.raises(UsageError, match=f"at most {MOST}"):
        DDTreeDrafter.build(Setting(1, MAX_LEN, pair.network, DraftOptions(tokens=BLOCK)))
