"""Faults of the texts: the same prompts told otherwise, and decoded several at once, paired with the table's."""

from dataclasses import replace

import numpy as np
import pytest
from dflash.pair import DRAFTER, trained_pair
from dflash.rounds import prompts_of
from tiny_model import CHAT_TEMPLATE, write_tiny_model

from outrider.checkpoint import open_checkpoint, resolve
from outrider.doctor.ablation.faults import HEALTHY
from outrider.doctor.ablation.inject import Pair
from outrider.doctor.ablation.other_texts import BATCH, Asked, with_other_texts
from outrider.doctor.ablation.retold import OFF, THINKING, Retold, retold
from outrider.doctor.ablation.run import ablate_recorded
from outrider.errors import UsageError
from outrider.replay import record
from outrider.text.tokenizer import load_tokenizer

PROMPTS = prompts_of(5, 5, 9, 14)
ASKED = Asked(prompts=PROMPTS, max_tokens=24)
TEXTS = ["one two", "three"]
SWITCHED = CHAT_TEMPLATE + "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"


@pytest.fixture(scope="module")
def pair() -> Pair:
    trained = trained_pair()
    return Pair(trained.target, DRAFTER, trained.tensors.__getitem__)


@pytest.fixture(scope="module")
def recorded(pair):
    return record(pair.target, PROMPTS, max_tokens=24)


@pytest.fixture
def tokenizer(tmp_path):
    def made(template):
        return load_tokenizer(open_checkpoint(resolve(str(write_tiny_model(tmp_path, chat_template=template)))))

    return made


def chats(tokenizer, ending=""):
    opening = "<s><turn>user\n{}</s><turn>assistant\n" + ending
    return [tuple(tokenizer.encode(opening.format(text), add_special=False)) for text in TEXTS]


def test_without_the_template_prompts_are_plain_text_and_a_missing_switch_is_named(tokenizer):
    one = tokenizer(CHAT_TEMPLATE)
    found, missing = retold(one, TEXTS, chats(one))
    assert [telling.fault for telling in found] == [OFF]
    assert found[0].prompts == [tuple(one.encode(text, add_special=True)) for text in TEXTS]
    assert missing == ("thinking: not applicable, the chat template has no enable_thinking",)


@pytest.mark.parametrize(("ending", "other"), [("", False), ("<think></think>", True)])
def test_thinking_is_switched_to_what_it_was_not(tokenizer, ending, other):
    one = tokenizer(SWITCHED)
    found, missing = retold(one, TEXTS, chats(one, ending))
    assert [telling.fault for telling in found] == [OFF, THINKING[other]]
    assert found[1].prompts == chats(one, "" if other else "<think></think>")
    assert missing == ()


def test_a_target_without_a_template_has_neither(tokenizer):
    found, missing = retold(tokenizer(None), TEXTS, [(1,), (2,)])
    assert found == ()
    assert "no chat template" in missing[0]


def test_a_template_that_refuses_says_so(tokenizer):
    one = tokenizer(SWITCHED + "{{ raise_exception('no thinking today') if enable_thinking is defined }}")
    with pytest.raises(UsageError, match="no thinking today"):
        retold(one, TEXTS, [(1,), (2,)])


def test_the_same_prompts_retold_count_as_they_did(pair, recorded):
    table = ablate_recorded(pair, recorded, faults=())
    found = with_other_texts(table, pair, ASKED, [Retold(OFF, PROMPTS)])
    assert found.entries[0].fault == OFF
    assert found.entries[0].counts.parted(table.healthy) == 0
    assert found.effect(found.entries[0]).value == 0


def test_other_prompts_are_paired_with_the_ones_they_replace(pair, recorded):
    shorter = [PROMPTS[0], *(prompt[:-2] for prompt in PROMPTS[1:])]
    table = ablate_recorded(pair, recorded, faults=())
    counts = with_other_texts(table, pair, ASKED, [Retold(OFF, shorter)]).entries[0].counts
    assert counts.rounds_X.shape == table.healthy.rounds_X.shape
    np.testing.assert_array_equal(counts.hits_XK[0], table.healthy.hits_XK[0])
    assert counts.parted(table.healthy) > 0


def test_a_text_that_ends_at_once_is_one_round(pair, recorded):
    stops = frozenset(int(text.tokens_T[text.first + 1]) for text in recorded.texts[:1])
    asked = replace(ASKED, stop_ids=stops)
    table = ablate_recorded(pair, recorded, faults=())
    found = with_other_texts(table, pair, asked, [Retold(OFF, PROMPTS)])
    counts = found.entries[0].counts
    assert (counts.rounds_X[0], counts.hits_XK[0].sum()) == (1, 0)


def test_several_texts_at_once_are_drafted_as_each_alone(pair, recorded):
    table = ablate_recorded(pair, recorded, faults=())
    found = with_other_texts(table, pair, ASKED, ())
    assert [entry.fault for entry in found.checks] == [BATCH]
    assert found.checks[0].counts.parted(table.healthy) == 0
    assert found.of_texts([0, 2]).checks[0].counts.rounds == table.healthy.some([0, 2]).rounds


def test_one_text_makes_no_batch(pair):
    alone = record(pair.target, PROMPTS[:1], max_tokens=24)
    table = ablate_recorded(pair, alone, faults=[HEALTHY])
    asked = Asked(prompts=PROMPTS[:1], max_tokens=24)
    assert with_other_texts(table, pair, asked, ()).checks == ()
