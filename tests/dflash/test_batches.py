"""Batches of unlike rows: greedy beside drawn, cancelled in the middle of a round, long beside short, left slots."""

import pytest
import torch
from dflash.pair import Pair
from dflash.rounds import MAX_LEN, drafter_of, prompts_of
from engine.running import engine_of, plain, tiny_network, tiny_target
from fakes import Free

from outrider.engine.params import SamplingParams
from outrider.models.dflash.config import LayerMask, Selector
from outrider.models.masks import Masks

PROMPTS = prompts_of(4, 20, 3, 9, 1)
GREEDY = SamplingParams(max_tokens=24)


def test_a_greedy_text_is_its_own_beside_drawn_ones(pair: Pair):
    engine = engine_of(pair.target, drafter_of(pair.network, slots=4, tokens=3), slots=4, max_len=MAX_LEN)
    drawn = SamplingParams(max_tokens=24, temperature=0.9, seed=4)
    sequences = [engine.add(p, GREEDY if index % 2 else drawn) for index, p in enumerate(PROMPTS)]
    for _ in engine.run():
        pass
    for sequence in sequences[1::2]:
        assert sequence.output == plain(pair.target, sequence.prompt, GREEDY)


def test_a_drawn_text_does_not_depend_on_its_neighbours(pair: Pair):
    drawn = SamplingParams(max_tokens=24, temperature=0.9, seed=4)
    outputs = []
    for neighbours in ((), PROMPTS[1:]):
        engine = engine_of(pair.target, drafter_of(pair.network, slots=4, tokens=3), slots=4, max_len=MAX_LEN)
        sequence = engine.add(PROMPTS[0], drawn)
        for index, prompt in enumerate(neighbours):
            engine.add(prompt, SamplingParams(max_tokens=5 + 6 * index, temperature=0.9 * (index % 2), seed=index))
        for _ in engine.run():
            pass
        outputs.append(sequence.output)
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("who", [0, 1])
def test_a_watch_may_cancel_itself_or_a_neighbour_in_the_middle_of_a_round(pair: Pair, who):
    engine = engine_of(pair.target, drafter_of(pair.network, slots=2, tokens=3), slots=2, max_len=MAX_LEN)
    sequences = []

    def watch(_token: int) -> bool:
        if len(sequences[0].output) == 3:
            engine.cancel(sequences[who])
        return False

    sequences.append(engine.add(PROMPTS[0], GREEDY, watch=watch))
    sequences.append(engine.add(PROMPTS[1], GREEDY))
    for _ in engine.run():
        pass
    assert sequences[who].finish_reason == "cancelled"
    other = sequences[1 - who]
    assert other.output == plain(pair.target, other.prompt, GREEDY)
    after = engine.add(PROMPTS[2], GREEDY)
    for _ in engine.run():
        pass
    assert after.output == plain(pair.target, after.prompt, GREEDY)


def test_a_slot_that_was_left_is_not_read_any_more(pair: Pair):
    drafter = drafter_of(pair.network, slots=3, tokens=3)
    engine = engine_of(pair.target, drafter, slots=3, max_len=MAX_LEN, costs=Free())
    first, gone, last = (
        engine.add(p, SamplingParams(max_tokens=n)) for p, n in zip(PROMPTS, (30, 2, 30), strict=False)
    )
    while gone.finish_reason is None:
        engine.step()
    assert drafter._memory.lengths[gone.slot] == 0
    assert drafter._memory.lengths[first.slot] == first.committed
    del last


@pytest.mark.parametrize("window", [1, 4, 40])
def test_windowed_layers_of_a_batch_read_no_more_than_their_window(window):
    lengths, width = torch.tensor([30, 37]), 3
    seen = torch.ones(width, width, dtype=torch.bool).tril().expand(2, width, width)
    depths = torch.arange(width).expand(2, width)
    whole = Masks(seen, depths, lengths, 40, 0, torch.float32).of(window)
    cut = Masks(seen, depths, lengths, 40, 30, torch.float32).of(window)
    assert whole.first == 0
    assert cut.first == max(0, 30 - window + 1)
    assert torch.equal(whole.mask[..., cut.first :], cut.mask)
    assert bool(whole.mask[..., : cut.first].isinf().all())


def test_a_variant_chooses_among_another_number_of_candidates():
    target = tiny_target(23, num_hidden_layers=2)
    network = tiny_network(target, kind="dflash2", selector=Selector(4, 3))
    other = network.variant(tiny_network(target, kind="dflash2", selector=Selector(4, 9)).config)
    assert (network.correction.candidates, other.correction.candidates) == (3, 9)


def test_a_drafter_of_an_fp16_target_runs_in_bfloat16_on_a_gpu_alone(monkeypatch):
    target = tiny_target(23, num_hidden_layers=2)
    monkeypatch.setattr(target, "activations", torch.float16)
    network = tiny_network(target, layers=(LayerMask(None, causal=False),) * 2)
    assert network.new_cache(slots=1, max_len=4).read(0, slice(1), slice(4))[0].dtype == torch.bfloat16
