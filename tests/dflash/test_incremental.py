"""The trained pair in the engine, step by step, against the dense reference that recomputes everything."""

from dataclasses import dataclass

import pytest
import torch
from dflash.pair import BLOCK, DRAFTER, Pair, run_target
from dflash.reference import block_logits, draft_logits
from dflash.rounds import MOST, Drafted, Recording, acceptance, prompts_of, run
from engine.running import plain
from torch import Tensor

from outrider.acceptance import Round
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence

STEPS = 50
PROMPTS = prompts_of(12, 4, 9, 23, 1)
NEW = 48
TOLERANCE = 1e-3  # float32, of logits as large as 20


@dataclass
class Step:
    """One round of one text: the anchor and its place, the logits of its block, drafted and accepted tokens."""

    text: tuple[int, ...]
    place: int
    anchor: int
    logits_KV: Tensor
    drafted: int = MOST
    accepted: int = 0


def alone(pair: Pair, prompt: tuple[int, ...]) -> list[Step]:
    """Every round of a text that runs alone."""
    recording = Recording(pair.network)
    [sequence] = run(pair, recording, [prompt], slots=1, new=NEW)
    text = (*sequence.prompt, *sequence.output)
    rounds = [r for r in sequence.rounds if r.drafted]
    assert len(rounds) == len(recording.drafts)
    return [_step(text, made, r) for made, r in zip(recording.drafts, rounds, strict=True)]


def _step(text: tuple[int, ...], made: Drafted, taken: Round) -> Step:
    [place], [anchor] = made.lengths, made.anchors
    return Step(text, place, anchor, made.logits_BKV[0], taken.drafted, taken.accepted)


@pytest.fixture(scope="module")
def steps(pair) -> list[Step]:
    return [step for prompt in PROMPTS for step in alone(pair, prompt)]


def recomputed(pair: Pair, step: Step) -> Tensor:
    """Logits of the block from the text alone."""
    embed, head = pair.target_tensors["model.embed_tokens.weight"], pair.target_tensors["lm_head.weight"]
    features_TF = run_target(pair.target_tensors, torch.tensor([step.text[: step.place]], dtype=torch.int64))[1][0]
    return draft_logits(DRAFTER, pair.tensors, embed, head, features_TF, step.anchor)


def test_every_step_has_the_logits_of_a_full_recomputation(pair, steps):
    assert len(steps) >= STEPS
    assert {0, MOST} <= {step.accepted for step in steps}
    for step in steps:
        assert step.anchor == step.text[step.place]
        assert float((step.logits_KV - recomputed(pair, step)).abs().max()) < TOLERANCE


def test_every_step_accepts_what_the_text_agrees_with(steps):
    for step in steps:
        follows = step.text[step.place + 1 : step.place + BLOCK]
        guesses = step.logits_KV.argmax(-1).tolist()
        agreed = next((i for i, (a, b) in enumerate(zip(guesses, follows, strict=False)) if a != b), len(follows))
        assert step.accepted == min(agreed, step.drafted)


def test_slots_are_right_as_often_as_the_reference_says_and_rounds_keep_the_agreed_prefix(pair):
    sequences = run(pair, pair.network, prompts_of(64, 3, 9, 20), new=NEW)
    right_RK = torch.cat([_right(pair, sequence) for sequence in sequences])
    agreed_RK = right_RK.cumprod(1)
    assert len(right_RK) > 300
    measured = acceptance(sequences).position_rates
    assert abs(float(right_RK[:, 0].mean()) - measured[0]) < 0.05
    assert torch.all(right_RK.mean(0) >= agreed_RK.mean(0))


def _right(pair: Pair, sequence: Sequence) -> Tensor:
    """Whether the best token of each slot is what follows, in each round with a whole block of text before it."""
    text = torch.tensor([*sequence.prompt, *sequence.output])
    ends = torch.tensor([taken.accepted + 1 for taken in sequence.rounds]).cumsum(0)
    places = torch.cat((torch.zeros(1, dtype=torch.int64), ends[:-1])) + len(sequence.prompt) - 1
    places = places[places + BLOCK < len(text)]
    features_STF = run_target(pair.target_tensors, text[None])[1]
    embed, head = pair.target_tensors["model.embed_tokens.weight"], pair.target_tensors["lm_head.weight"]
    logits_SPKV = block_logits(
        DRAFTER, pair.tensors, embed, head, features_STF, texts_ST=text[None], places_SP=places[None]
    )
    right_RK = (logits_SPKV[0].argmax(-1) == text[places[:, None] + torch.arange(1, BLOCK)]).float()
    kept = [taken.accepted for taken in sequence.rounds[: len(places)]]
    assert right_RK.cumprod(1).sum(1).tolist() == kept
    return right_RK


@pytest.fixture(scope="module")
def plain_texts(pair) -> dict[tuple[int, ...], list[int]]:
    return {prompt: plain(pair.target, prompt, SamplingParams(max_tokens=NEW)) for prompt in PROMPTS}


@pytest.mark.parametrize("slots", [1, 8])
def test_greedy_texts_are_those_of_plain_decoding(pair, plain_texts, slots):
    for sequence in run(pair, pair.network, PROMPTS, slots=slots, new=NEW):
        assert sequence.output == plain_texts[sequence.prompt]
