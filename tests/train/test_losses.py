"""Costs against their formulas, and chunks against the whole."""

from dataclasses import replace

import pytest
import torch
from dflash.random_drafter import config_of, network_of, random_drafter, random_target
from torch.nn.functional import cross_entropy
from train.rows import batch_of

from outrider.train import scoring
from outrider.train.features import Features
from outrider.train.lesson import Lesson, make_blocks
from outrider.train.losses import FOREIGN, Costs, Sums, pace_weights
from outrider.train.network import DraftNetwork, Tables
from outrider.train.options import TrainOptions
from outrider.train.scoring import Scorer

BLOCKS, SLOTS, WORDS = 5, 4, 11


def guesses() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(BLOCKS, SLOTS, WORDS, generator=generator)
    labels = torch.randint(WORDS, (BLOCKS, SLOTS), generator=generator)
    labels[1, 2:] = -1
    labels[3] = -1
    return logits, labels


def test_decayed_cross_entropy_is_weighed_by_slot_and_divided_by_the_weights():
    logits, labels = guesses()
    total, weights = 0.0, 0.0
    for block in range(BLOCKS):
        for slot in range(SLOTS):
            if labels[block, slot] >= 0:
                weight = torch.exp(torch.tensor(-slot / 3.0))
                total += weight * cross_entropy(logits[block, slot], labels[block, slot])
                weights += weight
    loss, sums = Costs(gamma=3.0).weigh(logits, labels, None)
    assert float(loss) == pytest.approx(float(total), rel=1e-5)
    assert sums.loss == pytest.approx(float(total / weights), rel=1e-5)


def test_accuracy_counts_what_was_asked():
    logits, labels = guesses()
    labels[0, 0] = FOREIGN
    _, sums = Costs(gamma=3.0).weigh(logits, labels, None)
    for slot in range(SLOTS):
        asked = labels[:, slot] != -1
        right = (logits[:, slot].argmax(-1) == labels[:, slot]) & asked
        assert sums.accuracy[slot] == pytest.approx(float(right.sum() / asked.sum()))
    assert float(sums.values[1]) < float(Costs(gamma=3.0).weigh(*guesses(), None)[1].values[1])


def test_without_a_floor_pace_is_the_derivative_of_the_expected_accepted_length():
    probability = torch.rand(BLOCKS, SLOTS, generator=torch.Generator().manual_seed(1))
    log_q = probability.log().requires_grad_()
    log_q.exp().cumprod(1).sum().backward()
    asked = torch.ones(BLOCKS, SLOTS, dtype=torch.bool)
    torch.testing.assert_close(pace_weights(probability, asked, 0.0), log_q.grad)


def test_pace_weights_follow_the_papers_sum_of_products():
    probability = torch.rand(BLOCKS, SLOTS, generator=torch.Generator().manual_seed(1))
    asked = torch.ones(BLOCKS, SLOTS, dtype=torch.bool)
    asked[2, 2:] = False
    found = pace_weights(probability, asked, 0.5)
    for block in range(BLOCKS):
        last = int(asked[block].sum())
        floored = [0.5 * float(q) + 0.5 for q in probability[block]]
        for j in range(SLOTS):
            products = [torch.tensor(floored[: m + 1]).prod() for m in range(j, last)]
            assert float(found[block, j]) == pytest.approx(float(sum(products)), rel=1e-5)


def test_distillation_from_a_law_of_one_word_is_cross_entropy():
    logits, labels = guesses()
    law = torch.nn.functional.one_hot(labels.clamp(min=0), WORDS).float()
    plain, distilled = (Costs(3.0, distillation=share).weigh(logits, labels, law)[1].loss for share in (0.0, 0.7))
    assert distilled == pytest.approx(plain, rel=1e-6)


def test_distillation_is_least_where_the_drafter_says_what_the_target_says():
    logits, labels = guesses()
    law = logits.softmax(-1)
    costs = Costs(3.0, distillation=1.0)
    same = costs.weigh(logits, labels, law)[1].loss
    for seed in range(5):
        other = logits + 0.3 * torch.randn(logits.shape, generator=torch.Generator().manual_seed(seed))
        assert costs.weigh(other, labels, law)[1].loss > same


def scored(chunk: int, costs: Costs, **variant):
    """Loss, counts and gradient of a batch through the scorer, so many blocks at a time."""
    config = config_of(**variant)
    tensors = random_drafter(config)
    target, embed, head = random_target(config)
    network = DraftNetwork(config, Tables(embed, head)).double()
    network.take(tensors)
    batch = batch_of([list(range(21)), list(range(20, 50))], [5, 9], block_size=config.block_size)
    read = Features(target, config.taps, rows=2, row_length=48).read(batch)
    blocks = make_blocks(batch, Lesson.served(config))
    hidden = torch.randn(
        len(blocks.labels_PK), config.max_tokens, config.hidden_size,
        dtype=torch.float64, generator=torch.Generator().manual_seed(2),
    ).requires_grad_()  # fmt: skip
    loss, sums = Scorer(network, target, most=chunk).score(hidden, blocks, read, costs)
    (3 * loss).backward()
    return loss.detach(), sums, hidden, network, blocks, read, target


ALL = {"decay": Costs(4.0), "pace": Costs(4.0, pace=0.5), "distillation": Costs(4.0, distillation=0.4)}


@pytest.mark.parametrize("kind", ALL)
def test_chunks_give_the_loss_and_the_gradient_of_the_whole(kind):
    costs = ALL[kind]
    loss, sums, hidden, network, blocks, read, target = scored(2, costs)
    law = target.logits(read.hidden_BTH.flatten(0, 1)[blocks.before_PK]).softmax(-1) if costs.distillation else None
    again = hidden.detach().clone().requires_grad_()
    whole, counted = costs.weigh(network.logits(again), blocks.labels_PK, law)
    (3 * whole).backward()
    torch.testing.assert_close(loss, whole.detach())
    torch.testing.assert_close(sums.values, counted.values)
    torch.testing.assert_close(hidden.grad, again.grad)
    assert hidden.grad.abs().max() > 0


def test_no_more_logits_are_held_than_a_chunk_has(monkeypatch):
    held = []
    honest = DraftNetwork.logits
    monkeypatch.setattr(DraftNetwork, "logits", lambda self, hidden: held.append(len(hidden)) or honest(self, hidden))
    scored(3, ALL["decay"])
    assert max(held) == 3
    assert sum(held) == 12


def test_chunks_are_equal_and_within_the_bound(monkeypatch):
    config = config_of()
    target, embed, head = random_target(config)
    network = DraftNetwork(config, Tables(embed, head))
    monkeypatch.setattr(scoring, "LOGITS", 10 * config.max_tokens * network.words)
    assert [Scorer(network, target, most=most)._chunk for most in (1, 10, 11, 25)] == [1, 10, 6, 9]


def test_a_head_of_fewer_words_is_asked_in_its_own():
    _, sums, hidden, network, blocks, _, target = scored(
        2, replace(ALL["distillation"]), variant="head of fewer words", taps=(1, 0)
    )
    words = network.weights()["d2t"] + torch.arange(network.words)
    own = {int(word): index for index, word in enumerate(words)}
    asked = (blocks.labels_PK >= 0).sum(0)
    assert torch.equal(sums.values[-len(asked) :].long(), asked)
    best = words[network.logits(hidden.detach()).argmax(-1)]
    right = ((best == blocks.labels_PK) & (blocks.labels_PK >= 0)).sum(0)
    assert torch.equal(sums.values[2 : 2 + len(asked)].long(), right)
    known = sum(int(label) in own for label in blocks.labels_PK.flatten() if label >= 0)
    assert 0 < known < int(asked.sum())
    assert network_of(network.config, network.weights(), target).words is not None


def test_sums_over_nothing_are_harmless():
    nothing = Sums.nothing(3, torch.device("cpu"))
    assert nothing.loss == 0
    assert nothing.accuracy == [0, 0, 0]


def test_the_settings_of_a_run_say_which_costs():
    assert Costs.of(TrainOptions(steps=1), 16) == Costs(7.0)
    assert Costs.of(TrainOptions(steps=1, loss="d-pace", pace=0.3, gamma=2.0), 16) == Costs(2.0, pace=0.3)
