"""Chains on the trained pair: where texts end, what a cancelled round leaves, when and how much is drafted."""

import pytest
from dflash.pair import Pair
from dflash.rounds import MAX_LEN, MOST, drafter_of, prompts_of
from engine.running import engine_of, finish, plain, tiny_network
from fakes import Free

from outrider.drafters.dflash import DFlashDrafter
from outrider.drafters.none import NoDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.errors import UsageError

NEW = 32
PROMPTS = prompts_of(6, 20, 3, 9, 1)


def run(pair: Pair, drafter, prompt, params: SamplingParams, costs: Costs | None = None) -> Sequence:
    engine = engine_of(pair.target, drafter, max_len=MAX_LEN, costs=costs)
    return finish(engine, [(prompt, params)])[0]


def inside(sequence: Sequence) -> list[int]:
    """Places of words accepted before the last of their round, each said there for the first time."""
    places, done = [], 0
    for taken in sequence.rounds:
        places += range(done, done + max(0, taken.accepted - 1))
        done += taken.accepted + 1
    return [place for place in places if sequence.output.index(sequence.output[place]) == place]


def test_a_stop_token_ends_the_text_inside_an_accepted_chain(pair):
    tried = 0
    for prompt in PROMPTS:
        whole = run(pair, drafter_of(pair.network), prompt, SamplingParams(max_tokens=NEW))
        for place in inside(whole):
            params = SamplingParams(max_tokens=NEW, stop_token_ids=(whole.output[place],))
            sequence = run(pair, drafter_of(pair.network), prompt, params)
            assert sequence.output == whole.output[: place + 1]
            assert sequence.finish_reason == "stop"
            tried += 1
    assert tried >= 4


@pytest.mark.parametrize("length", range(1, 2 * MOST))
def test_max_tokens_ends_the_text_inside_a_block(pair, length):
    prompt = PROMPTS[0]
    sequence = run(pair, drafter_of(pair.network), prompt, SamplingParams(max_tokens=length))
    assert sequence.output == plain(pair.target, prompt, SamplingParams(max_tokens=length))
    assert all(r.depth < length for r in sequence.rounds)


def test_a_text_may_fill_the_cache_to_its_last_row(pair):
    params = SamplingParams(max_tokens=MAX_LEN - len(PROMPTS[0]))
    assert run(pair, drafter_of(pair.network), PROMPTS[0], params).output == plain_of(pair, PROMPTS[0], params)


def plain_of(pair: Pair, prompt, params: SamplingParams) -> list[int]:
    return run(pair, NoDrafter(), prompt, params).output


@pytest.mark.parametrize("rounds", range(4))
def test_a_cancelled_sequence_leaves_nothing_to_the_next_in_its_slot(pair, rounds):
    params = SamplingParams(max_tokens=NEW)
    engine = engine_of(pair.target, drafter_of(pair.network, slots=2), slots=2, max_len=MAX_LEN)
    beside = engine.add(PROMPTS[0], params)
    gone = engine.add(PROMPTS[2], params)
    for _ in range(rounds):
        engine.step()
    engine.cancel(gone)
    after = engine.add(PROMPTS[1], params)
    for _ in engine.run():
        pass
    assert beside.output == plain(pair.target, PROMPTS[0], params)
    assert after.output == plain(pair.target, PROMPTS[1], params)
    alone = run(pair, drafter_of(pair.network), PROMPTS[1], params)
    assert after.rounds == alone.rounds


class Cheap(Costs):
    """A machine on which nodes cost little."""

    def of(self, width: int, rows: int = 1) -> float:
        return 1 + 0.08 * (width - 1)


def test_as_many_tokens_are_drafted_as_pay(pair):
    drafted = set()
    for prompt in PROMPTS:
        drafter = DFlashDrafter.build(Setting(1, MAX_LEN, pair.network))
        drafted |= {r.drafted for r in run(pair, drafter, prompt, SamplingParams(max_tokens=NEW), Cheap()).rounds[:-4]}
    assert len(drafted) > 2


def test_the_first_rounds_of_an_engine_go_without_drafts_to_learn_what_a_plain_pass_costs(pair):
    drafter = DFlashDrafter.build(Setting(1, MAX_LEN, pair.network))
    rounds = run(pair, drafter, PROMPTS[0], SamplingParams(max_tokens=NEW), Costs()).rounds
    assert [r.drafted for r in rounds[:2]] == [0, 0]
    assert rounds[2].drafted > 0


@pytest.mark.parametrize("slots", [3, 5, 7, 9])
def test_a_batch_that_never_runs_alone_is_drafted_for_too(pair, slots):
    drafter = DFlashDrafter.build(Setting(slots, MAX_LEN, pair.network))
    engine = engine_of(pair.target, drafter, slots=slots, max_len=MAX_LEN, costs=Costs())
    sequences = finish(engine, [(PROMPTS[1], SamplingParams(max_tokens=NEW))] * slots)
    assert all(any(r.drafted for r in sequence.rounds) for sequence in sequences)


class Dear(Costs):
    """A machine on which a drafted round costs one and a half plain ones."""

    def of(self, width: int, rows: int = 1) -> float:
        return 1.5 if width > 1 else 1.0


@pytest.mark.parametrize("slots", [2, 8])
def test_idle_slots_between_two_texts_are_not_held_against_the_drafter(pair, slots):
    drafter = DFlashDrafter.build(Setting(slots, MAX_LEN, pair.network))
    engine = engine_of(pair.target, drafter, slots=slots, max_len=MAX_LEN, costs=Dear(learn=False))
    long = {0, slots - 1}
    sequences = [engine.add(PROMPTS[1], SamplingParams(max_tokens=90 if slot in long else 2)) for slot in range(slots)]
    for _ in engine.run():
        pass
    for slot in long:
        rounds = sequences[slot].rounds[:-3]
        assert sum(r.drafted > 0 for r in rounds) > 0.9 * len(rounds)


class SlowDrafter(Costs):
    """Learns from a machine on which the drafter's pass takes as long as nine of the target."""

    def observe(self, width: int, seconds: float, *, rows: int = 1) -> None:
        super().observe(width, (10.0 if width > 1 else 1.0) + 0.02 * width * rows, rows=rows)


@pytest.mark.parametrize("rows", [2, 3, 4, 6])
def test_texts_drafted_alone_do_not_hide_from_a_batch_that_drafting_does_not_pay(pair, rows):
    costs = SlowDrafter()
    drafter = DFlashDrafter.build(Setting(rows, MAX_LEN, pair.network))
    engine = engine_of(pair.target, drafter, slots=rows, max_len=MAX_LEN, costs=costs)
    for prompt in PROMPTS * 3:
        finish(engine, [(prompt, SamplingParams(max_tokens=NEW))])
    together = finish(engine, [(PROMPTS[1], SamplingParams(max_tokens=120))] * rows)
    assert costs.of(2, rows) > 4
    assert sum(r.drafted > 0 for r in together[0].rounds) < 40


def test_a_drafter_that_is_never_right_pauses_longer_and_longer(pair):
    stranger = tiny_network(pair.target, seed=9, hidden_size=pair.target.config.hidden_size)
    drafter = DFlashDrafter.build(Setting(1, MAX_LEN, stranger))
    rounds = run(pair, drafter, PROMPTS[0], SamplingParams(max_tokens=100), Costs(learn=False)).rounds
    drafted = [r.drafted > 0 for r in rounds]
    assert sum(drafted[:10]) >= 8
    assert sum(drafted[-50:]) < 20


def test_a_fixed_number_is_drafted_whatever_it_brings(pair):
    drafter = drafter_of(pair.network, tokens=3)
    rounds = run(pair, drafter, PROMPTS[0], SamplingParams(max_tokens=NEW), Free()).rounds
    assert {r.drafted for r in rounds[:-3]} == {3}


def test_seeds_give_the_text_without_drafts_where_the_best_words_are_taken(pair):
    params = SamplingParams(temperature=0.8, top_p=0.9, seed=5, max_tokens=NEW, frequency_penalty=0.2)
    for prompt in PROMPTS:
        drafter = DFlashDrafter(pair.network, Setting(1, MAX_LEN, pair.network, DraftOptions(sampled=False)))
        assert run(pair, drafter, prompt, params, Free()).output == plain_of(pair, prompt, params)


def test_drawn_drafts_are_accepted_more_often_than_best_ones_when_texts_are_drawn(pair):
    accepted = {}
    for sampled in (True, False):
        drafter = drafter_of(pair.network, slots=8, sampled=sampled)
        engine = engine_of(pair.target, drafter, slots=8, max_len=MAX_LEN)
        requests = [
            (p, SamplingParams(temperature=1.0, seed=seed, max_tokens=NEW)) for p in PROMPTS for seed in range(4)
        ]
        rounds = [r for s in finish(engine, requests) for r in s.rounds]
        accepted[sampled] = sum(r.accepted for r in rounds) / len(rounds)
    assert accepted[True] > accepted[False]


def test_what_cannot_be_drafted_is_refused(pair):
    with pytest.raises(UsageError, match="--draft-model"):
        DFlashDrafter.build(Setting(1, MAX_LEN))
    with pytest.raises(UsageError, match=f"at most {MOST}"):
        DFlashDrafter.build(Setting(1, MAX_LEN, pair.network, DraftOptions(tokens=MOST + 1)))
