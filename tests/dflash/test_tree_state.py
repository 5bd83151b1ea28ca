"""What trees leave behind, in float64: every node's logits, and what a walk commits in both caches, are its path's."""

import numpy as np
import pytest
import torch
from dflash.random_drafter import config_of, network_of, random_drafter, random_target
from engine.running import engine_of
from torch import Tensor

from outrider.drafters.ddtree import DDTreeDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine import engine as engine_module
from outrider.engine import step
from outrider.engine.engine import Engine
from outrider.engine.interfaces import Committed
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.engine.tree import DraftTree
from outrider.engine.walk import follow
from outrider.models.dflash.network import DFlash

MAX_LEN, BUDGET = 64, 31
TOLERANCE = 1e-10
PROMPTS = ((5,), tuple(range(3, 20)), (7, 8, 9, 7, 8))
VARIANTS = ("plain", "dflash2", "dspark", "head of fewer words")


@pytest.fixture(scope="module", params=VARIANTS)
def network(request) -> DFlash:
    config = config_of(request.param)
    target, _, _ = random_target(config)
    return network_of(config, random_drafter(config), target)


@pytest.fixture(autouse=True)
def walks_at_random(monkeypatch):
    """Decide the path to any node of a tree, whatever the target says; prompts come in several chunks."""
    generator = np.random.default_rng(5)

    def verify(tree, logits_BNV, rules, positions):
        decisions_BN = torch.from_numpy(generator.integers(0, logits_BNV.shape[-1], tree.tokens_BN.shape))
        for row, count in enumerate(tree.counts_B.tolist()):
            node = int(generator.integers(count))
            while node:
                parent = int(tree.parents_BN[row, node])
                decisions_BN[row, parent] = tree.tokens_BN[row, node]
                node = parent
        return follow(tree, decisions_BN)

    monkeypatch.setattr(step, "verify", verify)
    monkeypatch.setattr(engine_module, "CHUNK", 6)


def close(found: Tensor, wanted: Tensor) -> None:
    assert found.shape == wanted.shape
    assert float((found - wanted).abs().max()) <= TOLERANCE * float(wanted.abs().max())


class Watched(DDTreeDrafter):
    """Keeps the passes that it was shown."""

    def __init__(self, network: DFlash, setting: Setting) -> None:
        super().__init__(network, setting)
        self.passes: list[Committed] = []

    def observe(self, committed: Committed) -> None:
        super().observe(committed)
        self.passes.append(committed)


def started(network: DFlash, slots: int) -> tuple[Engine, Watched, list[Sequence]]:
    setting = Setting(slots, MAX_LEN, network, DraftOptions(budget=BUDGET))
    drafter = Watched(network, setting)
    engine = engine_of(network._target, drafter, slots=slots, max_len=MAX_LEN)
    params = SamplingParams(max_tokens=24)
    return engine, drafter, [engine.add(prompt, params) for prompt in PROMPTS]


def afresh(network: DFlash, text: list[int]):
    """The target over a whole text, from nothing: its cache and output."""
    target = network._target
    cache = target.new_cache(slots=1, max_len=len(text))
    tree = DraftTree.chain(torch.tensor([text]))
    taps = network.config.taps
    return cache, target.forward(tree, cache, slice(0, 1), torch.tensor([0]), span=len(text), taps=taps)


def test_every_node_of_a_tree_has_the_states_of_its_path_alone(network):
    engine, drafter, sequences = started(network, slots=2)
    branching = 0
    while engine.busy:
        before = {s.slot: [*s.prompt, *s.output] for s in sequences if s.slot >= 0 and s.finish_reason is None}
        engine.step()
        shown = drafter.passes[-1]
        if not any(shown.tokens):
            continue
        for row, slot in enumerate(shown.slots):
            if slot >= 0 and slot in before and len(shown.tokens[row]):
                check_nodes(network, before[slot], shown, row)
                branching += int(not shown.tree.is_chain)
    assert branching > 10


def check_nodes(network: DFlash, text: list[int], shown: Committed, row: int) -> None:
    tree = shown.tree
    assert int(tree.tokens_BN[row, 0]) == text[-1]
    for node in range(0, int(tree.counts_B[row]), 3):
        path = tree.visible_BNN[row, node].nonzero()[:, 0]
        _, out = afresh(network, [*text[:-1], *tree.tokens_BN[row, path].tolist()])
        close(shown.out.hidden_BNH[row, node], out.hidden_BNH[0, -1])
        for tap in network.config.taps:
            close(shown.out.taps[tap][row, node], out.taps[tap][0, -1])


def test_after_any_walk_both_caches_are_those_of_a_fresh_pass_over_the_text(network):
    engine, drafter, sequences = started(network, slots=3)
    accepted = set()
    while engine.busy:
        running = [s for s in sequences if s.finish_reason is None]
        engine.step()
        for sequence in running:
            check_slot(network, engine, drafter, sequence)
    for sequence in sequences:
        accepted |= {r.accepted for r in sequence.rounds}
    assert {0, 1, 2} <= accepted


def check_slot(network: DFlash, engine: Engine, drafter: Watched, sequence: Sequence) -> None:
    done = sequence.committed
    if not done or sequence.slot < 0:
        return
    cache, out = afresh(network, [*sequence.prompt, *sequence.output][:done])
    rows = slice(sequence.slot, sequence.slot + 1)
    same_rows(engine._stepper._cache, cache, rows, done, network._target.shape.num_layers)
    context = network.new_cache(slots=1, max_len=done)
    features = torch.cat([out.taps[tap] for tap in network.config.taps], -1)
    network.remember(features, context, slice(0, 1), torch.tensor([0]), span=done)
    assert drafter._memory.lengths[sequence.slot] == (done if sequence.finish_reason is None else 0)
    same_rows(drafter._memory.cache, context, rows, done, network.config.num_layers)


def same_rows(ours, fresh, rows: slice, done: int, layers: int) -> None:
    for layer in range(layers):
        found, wanted = ours.read(layer, rows, slice(0, done)), fresh.read(layer, slice(0, 1), slice(0, done))
        for one, other in zip(found, wanted, strict=True):
            close(one, other)
