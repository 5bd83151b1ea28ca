"""The list of answers: mixed by weight, the same for the same seed, greedy at most once a prompt."""

from collections import Counter
from itertools import islice

import pytest
from train.writing import prompts_of

from outrider.errors import UnknownNameError, UsageError
from outrider.train.work import Mix, Plan, parse_weights


def plan(*sizes, mix="1", seed=0, once=False, weights=None) -> Plan:
    return Plan(prompts_of(*sizes), Mix.parse(mix), seed=seed, weights=weights, once=once)


def test_a_mix_is_temperatures_with_shares():
    assert Mix.parse("0:2,0.7:1,1:1") == Mix((0.0, 0.7, 1.0), (0.5, 0.25, 0.25))
    assert Mix.parse("0.7") == Mix((0.7,), (1.0,))


@pytest.mark.parametrize("text", ["", "hot", "0:hot", "0:0", "-1:1", "1e-9", "200", "1:1,1:2", "0:inf", "nan", "1:nan"])
def test_a_mix_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="--temperature"):
        Mix.parse(text)


def test_once_answers_each_prompt_once_in_an_order_of_the_seed():
    items = list(plan(30, 20, once=True, mix="0:1,1:1").items())
    assert plan(30, 20, once=True).num_items == len(items) == 50
    assert [item.index for item in items] == list(range(50))
    assert len({item.prompt.tokens for item in items}) == 50
    other = list(plan(30, 20, once=True, seed=1).items())
    assert [item.prompt.tokens for item in other] != [item.prompt.tokens for item in items]


def test_the_list_can_be_taken_up_anywhere():
    whole = list(islice(plan(7, 5, mix="0:1,1:1").items(), 100))
    assert list(islice(plan(7, 5, mix="0:1,1:1").items(40), 60)) == whole[40:]


def test_sources_are_mixed_by_weight_in_every_part_of_the_list():
    items = list(islice(plan(100, 100, 100, weights={"s0": 3.0, "s1": 0.5}).items(), 4500))
    for part in (items[:450], items[450:900], items[-450:]):
        assert Counter(item.prompt.source for item in part) == {0: 300, 1: 50, 2: 100}
    of_half = Counter(item.prompt.tokens for item in items if item.prompt.source == 1)
    assert set(of_half.values()) == {5}


def test_a_prompt_is_answered_greedily_at_most_once_and_in_the_share_of_the_mix_at_first():
    items = list(islice(plan(400, mix="0:0.4,0.7:0.3,1:0.3").items(), 8000))
    greedy = Counter(item.prompt.tokens for item in items if item.temperature == 0)
    assert set(greedy.values()) == {1}
    shares = Counter(item.temperature for item in items[:400])
    assert shares[0.0] == pytest.approx(160, abs=40)
    assert shares[0.7] == pytest.approx(120, abs=40)


def test_each_answer_has_numbers_of_its_own():
    seeds = [item.seed for item in islice(plan(5).items(), 1000)]
    assert len(set(seeds)) == 1000


def test_a_greedy_list_ends_when_each_prompt_was_answered():
    items = list(plan(5, 3, mix="0", weights={"s1": 0.4}).items())
    assert len({item.prompt.tokens for item in items}) == len(items) == 8


def test_a_weight_of_an_unknown_source_names_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"Did you mean 's1'.*Known: s0, s1"):
        plan(2, 2, weights={"s11": 2.0})


def test_weights_are_a_source_and_a_number():
    assert parse_weights(["a=2", "b=c=0.5"]) == {"a": 2.0, "b=c": 0.5}


@pytest.mark.parametrize("text", ["a", "a=", "a=0", "=1", "a=-1", "a=inf", "a=b"])
def test_a_weight_in_another_form_is_refused(text):
    with pytest.raises(UsageError, match="expected NAME=WEIGHT"):
        parse_weights([text])
