"""Random schedules on the trained pair: sequences come, are cancelled and go, prompts are read beside decoding ones.

Every block that is drafted, whatever its slot held before, is that of a dense recomputation over its own text.
"""

import random
from dataclasses import dataclass

import pytest
import torch
from dflash.pair import DRAFTER, Pair, run_target
from dflash.reference import draft_logits
from dflash.rounds import prompts_of
from engine.running import engine_of, plain

from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine import engine as engine_module
from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.registry import DRAFTERS, resolve

MAX_LEN, CHUNK, ACTS = 48, 5, 50
TOLERANCE = 1e-3  # float32, of logits as large as 20
OPTIONS = {
    "dflash": [DraftOptions(), DraftOptions(tokens=7), DraftOptions(tokens=3)],
    "ddtree": [DraftOptions(), DraftOptions(budget=9), DraftOptions(budget=31)],
}


@dataclass
class Checked:
    """Compares every block with the dense one."""

    pair: Pair
    engine: Engine | None = None
    rows: int = 0

    def __post_init__(self) -> None:
        self._memory = None

    def draft(self, slots):
        draft = self._memory.draft(slots)
        for row, slot in enumerate(slots):
            if draft is not None and slot is not None:
                self.check(slot, draft.logits_BKV[row])
        return draft

    def check(self, slot, logits_KV: torch.Tensor) -> None:
        sequence = self.engine._scheduler._running[slot.slot]
        text = (*sequence.prompt, *sequence.output)
        place = len(text) - 1
        assert (slot.anchor, self._memory.lengths[slot.slot], sequence.committed) == (text[-1], place, place)
        tensors = self.pair.target_tensors
        features = run_target(tensors, torch.tensor([text[:place]], dtype=torch.int64))[1][0]
        embed, head = tensors["model.embed_tokens.weight"], tensors["lm_head.weight"]
        wanted_KV = draft_logits(DRAFTER, self.pair.tensors, embed, head, features, slot.anchor)
        assert float((logits_KV - wanted_KV).abs().max()) < TOLERANCE
        self.rows += 1

    def observe(self, committed) -> None:
        self._memory.observe(committed)

    def begin(self, slot: int, prompt) -> None:
        self._memory.begin(slot, prompt)

    def forget(self, slot: int) -> None:
        self._memory.forget(slot)

    def share(self, source: int, slot: int, count: int) -> bool:
        return self._memory.share(source, slot, count)


def params_of(chance: random.Random, room: int, temperature: float) -> SamplingParams:
    penalty = 0.5 if chance.random() < 0.3 else 0.0
    longest = min(room, chance.choice([1, 2, 3, 9, room]))
    return SamplingParams(
        max_tokens=longest, temperature=temperature, seed=chance.randrange(99), frequency_penalty=penalty
    )


def play(chance: random.Random, engine: Engine, temperature: float) -> list[Sequence]:
    """Add, cancel and step at random, then run to the end."""
    prompts = prompts_of(12, *(chance.choice([1, 2, 5, 6, 11, 23, 40]) for _ in range(6)))
    sequences: list[Sequence] = []
    for _ in range(ACTS):
        act = chance.random()
        if act < 0.25:
            prompt = chance.choice(prompts)
            sequences.append(engine.add(prompt, params_of(chance, MAX_LEN - len(prompt), temperature)))
        elif act < 0.32 and sequences:
            engine.cancel(chance.choice(sequences))
        else:
            engine.step()
    for _ in engine.run():
        pass
    return sequences


@pytest.mark.parametrize("seed", range(12))
def test_every_block_is_drafted_from_its_own_text_alone(pair, monkeypatch, seed):
    monkeypatch.setattr(engine_module, "CHUNK", CHUNK)
    chance = random.Random(seed)  # noqa: S311 -- a schedule, no secret
    name, slots, temperature = ("dflash", "ddtree")[seed % 2], chance.choice([1, 2, 3, 5]), chance.choice([0.0, 1.0])
    setting = Setting(slots, MAX_LEN, pair.network, chance.choice(OPTIONS[name]))
    drafter = resolve("drafter", DRAFTERS, name).build(setting)
    checked = Checked(pair)
    checked._memory, drafter._memory = drafter._memory, checked
    costs = Costs(learn=chance.random() < 0.3)
    checked.engine = engine_of(pair.target, drafter, slots=slots, max_len=MAX_LEN, costs=costs)
    sequences = play(chance, checked.engine, temperature)
    assert checked.rows > 0
    for sequence in sequences:
        if temperature == 0 or name == "ddtree":
            whole = plain(pair.target, sequence.prompt, sequence.params)
            assert sequence.output == whole[: len(sequence.output)]
