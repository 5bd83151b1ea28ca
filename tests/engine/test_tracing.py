"""What is recorded of a round: enough to tell the text again, and probabilities that a run from scratch confirms."""

import fakes
import numpy as np
import pytest
import torch
from engine.running import CPU, drafter_of, engine_of, finish, plain, tiny_target

from outrider.drafters.ngram import NgramDrafter
from outrider.engine import engine as engine_module
from outrider.engine.params import SamplingParams
from outrider.engine.tree import DraftTree
from outrider.registry import DRAFTERS
from outrider.traces.format import TraceRow

VOCAB = 23
TARGET = tiny_target(VOCAB, seed=4, num_hidden_layers=2)
PROMPTS = [(4, 9, 2), (7,), (1, 2, 3, 4, 5, 6, 7, 8)]
HOT = SamplingParams(temperature=1.5, seed=6, max_tokens=20)
KNOWN = {prompt: plain(TARGET, prompt, HOT) for prompt in PROMPTS}


def traced(drafter, requests, *, slots=1):
    """Return the sequences and the records of each."""
    engine = engine_of(TARGET, drafter, slots=slots)
    records = []
    engine.recorder = records.append
    sequences = finish(engine, requests)
    return sequences, {s.id: [r for r in records if r.sequence_id == s.id] for s in sequences}


def law_after(text):
    """The target's own law after a text, run from scratch."""
    tree = DraftTree.chain(torch.tensor([text]))
    cache = TARGET.new_cache(slots=1, max_len=len(text))
    out = TARGET.forward(tree, cache, slice(0, 1), torch.tensor([0], device=CPU), span=len(text))
    return TARGET.logits(out.hidden_BNH)[0, -1].softmax(-1)


def path_to(record, node):
    """The tokens from below the root to a node."""
    tokens = []
    while node:
        tokens.insert(0, record.tokens[node - 1])
        node = record.parents[node - 1]
    return tokens


@pytest.mark.parametrize("slots", [1, 3])
def test_the_records_of_a_text_tell_it_again(slots):
    sequences, records = traced(fakes.Oracle(KNOWN, VOCAB, seed=1), [(p, HOT) for p in PROMPTS], slots=slots)
    for sequence in sequences:
        text = list(sequence.prompt)
        for number, record in enumerate(records[sequence.id], start=1):
            assert (record.round, record.position, record.anchor) == (number, len(text), text[-1])
            text += [*(record.tokens[node - 1] for node in record.path), record.bonus][: record.kept]
        assert text == [*sequence.prompt, *sequence.output]
        assert any(record.path for record in records[sequence.id])


def test_a_record_counts_as_the_round_does():
    sequences, records = traced(fakes.Oracle(KNOWN, VOCAB, seed=2), [(PROMPTS[0], HOT)])
    found = [(len(r.tokens), min(len(r.path), r.kept)) for r in records[sequences[0].id]]
    assert found == [(r.drafted, r.accepted) for r in sequences[0].rounds]


@pytest.mark.parametrize("slots", [1, 3])
def test_each_nodes_probability_is_the_targets_own_after_its_ancestors(slots):
    """Settings change what is decided and not what is recorded."""
    params = SamplingParams(temperature=1.5, seed=6, max_tokens=6, top_k=3, logit_bias={5: 4.0}, presence_penalty=1.0)
    sequences, records = traced(fakes.Flood(VOCAB, seed=3), [(p, params) for p in PROMPTS], slots=slots)
    for sequence in sequences:
        whole = [*sequence.prompt, *sequence.output]
        for record in records[sequence.id]:
            for node, parent in enumerate(record.parents, start=1):
                law = law_after([*whole[: record.position], *path_to(record, parent)])
                assert record.target[node - 1] == pytest.approx(float(law[record.tokens[node - 1]]), rel=1e-4)


def test_a_text_that_ends_inside_a_path_keeps_less_than_was_accepted():
    text = KNOWN[PROMPTS[0]]
    params = SamplingParams(temperature=1.5, seed=6, max_tokens=20, stop_token_ids=(text[2],))
    drafter = fakes.Oracle(KNOWN, VOCAB)
    drafter.guess = lambda slot: fakes.Proposal.chain(drafter.right(slot.slot)[:6])
    sequences, records = traced(drafter, [(PROMPTS[0], params)])
    last = records[sequences[0].id][-1]
    assert last.kept <= len(last.path)
    assert last.position - len(PROMPTS[0]) + last.kept == len(sequences[0].output)


def test_what_the_drafter_foresaw_is_passed_on():
    prompt = (3, 1, 4, 1, 5, 3, 1, 4, 1, 5, 3, 1, 4)
    drafter = NgramDrafter()
    engine = engine_of(TARGET, drafter, costs=fakes.Free(learn=False))
    records = []
    engine.recorder = records.append
    finish(engine, [(prompt, SamplingParams(max_tokens=4))])
    first = records[0]
    assert len(first.reach) == len(first.tokens) > 1
    assert list(first.reach) == sorted(first.reach, reverse=True)
    assert not first.sampled


def test_a_drafter_without_estimates_and_one_that_draws_say_so():
    law = np.full(VOCAB, 1 / VOCAB)
    _, records = traced(fakes.SampledChain(lambda _text: law, seed=2), [(PROMPTS[0], HOT)])
    drawn = [record for record in records[0] if record.tokens]
    assert all(record.sampled for record in drawn)
    assert all(record.reach is None for record in drawn)


def test_nothing_is_made_where_nobody_listens(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("a record was made")

    monkeypatch.setattr(engine_module, "round_records", fail)
    engine = engine_of(TARGET, fakes.Flood(VOCAB))
    assert finish(engine, [(PROMPTS[0], HOT)])[0].output == KNOWN[PROMPTS[0]]
    engine.recorder = print
    engine.add(PROMPTS[0], HOT)
    with pytest.raises(AssertionError, match="a record was made"):
        list(engine.run())


def test_each_token_says_from_which_depth_it_was_accepted():
    engine = engine_of(TARGET, fakes.Oracle(KNOWN, VOCAB, seed=1))
    records = []
    engine.recorder = records.append
    engine.add(PROMPTS[0], HOT)
    events = list(engine.run())
    wanted = [depth for record in records for depth in [*range(1, len(record.path) + 1), 0][: record.kept]]
    assert [event.depth for event in events] == wanted
    assert max(event.depth for event in events) > 1
    assert all((event.depth > 0) == (event.origin == "draft") for event in events)


@pytest.mark.parametrize("name", DRAFTERS)
def test_every_drafter_of_the_table_foresees_no_node_more_often_than_its_parent(name):
    prompts = [(3, 1, 4, 1, 5, 3, 1, 4, 1, 5, 3, 1, 4), (7, 7, 7, 7, 7)]
    engine = engine_of(TARGET, drafter_of(name, TARGET, slots=2), slots=2, costs=fakes.Free(learn=False))
    records = []
    engine.recorder = records.append
    finish(engine, [(prompt, SamplingParams(max_tokens=12)) for prompt in prompts])
    for record in records:
        reach = [1.0, *(record.reach or [0.0] * len(record.tokens))]
        assert all(0 <= reach[node] <= reach[parent] for node, parent in enumerate(record.parents, start=1))
        TraceRow.of(record, drafter=name, prompt=0)
    assert any(record.reach for record in records) == (name != "none")
