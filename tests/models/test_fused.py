"""A decoder by fused kernels against the same one in plain PyTorch: logits, taps, committed caches."""

import pytest
import torch
from kernels.on_device import DEVICE, error, needs_triton
from kernels.trees import random_trees
from models.peers import HYBRID, SIZES

from outrider.engine.tree import DraftTree
from outrider.engine.walk import follow
from outrider.models.computing import Computing, computing_on
from outrider.models.decoder import Decoder
from outrider.models.linear import Float8Linear, SkinnyLinear
from outrider.models.loading import decoder_config
from outrider.models.tiny import random_tensors

pytestmark = needs_triton
RAWS = {
    "hybrid": {**SIZES, **HYBRID, "model_type": "qwen3_5_text"},
    "windows": {
        **SIZES, "model_type": "qwen3", "head_dim": 16,
        "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2,
    },
    "biases": {**SIZES, "model_type": "qwen2"},
}  # fmt: skip


def decoder(raw, computing=None):
    config = decoder_config(raw)
    made = Decoder(config, random_tensors(config), dtype=torch.float32, device=DEVICE)
    made.computing = computing or computing_on(DEVICE, torch.float32)
    return made


def draft_tree(seed, nodes=9):
    trees = random_trees("any", nodes, seed=seed)
    tokens = torch.randint(SIZES["vocab_size"], (2, nodes), generator=torch.Generator().manual_seed(seed))
    for row in range(2):  # siblings carry different tokens
        tokens[row] = (tokens[row, 0] + torch.arange(nodes) * 7) % SIZES["vocab_size"]
    counts = torch.tensor([nodes, nodes])
    parts = (tokens, trees.parents, trees.depths, trees.sees, counts)
    return DraftTree(*(part.to(DEVICE) for part in parts), is_chain=False)


@pytest.mark.parametrize("name", RAWS)
def test_rounds_equal_those_in_plain_pytorch(name):
    fused, plain = decoder(RAWS[name]), decoder(RAWS[name], Computing())
    assert type(fused.computing) is not Computing
    caches = [target.new_cache(slots=4, max_len=64) for target in (fused, plain)]
    lengths, rows = torch.tensor([0, 0], device=DEVICE), slice(1, 3)
    for step in range(4):
        tree = draft_tree(step)
        outs = [
            target.forward(tree, cache, rows, lengths, span=None, taps=(1, 3))
            for target, cache in zip((fused, plain), caches, strict=True)
        ]
        assert error(fused.logits(outs[0].hidden_BNH), plain.logits(outs[1].hidden_BNH)) < 2e-5
        for tap in (1, 3):
            assert error(outs[0].taps[tap], outs[1].taps[tap]) < 2e-5
        decisions = torch.full_like(tree.tokens_BN, -1)
        decisions.scatter_(1, tree.parents_BN, tree.tokens_BN)  # each node is followed by one of its children
        walk = follow(tree, decisions)
        counts = walk.accepted_B + 1
        for cache in caches:
            cache.commit(rows, lengths, walk.path_BN, counts)
        lengths = lengths + counts
        if caches[0].states is not None:
            for ours, theirs in zip(caches[0].states.stacked, caches[1].states.stacked, strict=True):
                assert error(ours, theirs) < 2e-5
    assert int(lengths.min()) > 4
    for layer in caches[0].layers:
        for ours, theirs in zip(*(c.read(layer, slice(1, 2), slice(0, int(lengths[0]))) for c in caches), strict=True):
            assert error(ours, theirs) < 2e-5


@pytest.mark.parametrize("rows", [1, 64, 300])
def test_float8_layers_are_near_the_exact_ones(rows):
    torch.manual_seed(0)
    weight, inputs = torch.randn(288, 160, device=DEVICE) / 12, torch.randn(rows, 160, device=DEVICE)
    exact, narrow = SkinnyLinear(weight, None), Float8Linear(weight, None)
    assert error(exact(inputs), inputs @ weight.T) < 1e-5
    assert error(narrow(inputs), inputs @ weight.T) < 0.04  # three bits of mantissa
    assert error(narrow(inputs)[:, 256:], (inputs @ weight.T)[:, 256:]) < 1e-5
    pair = Float8Linear(weight[:256], None)
    if pair.can_gate(rows):
        gate, up = pair(inputs).chunk(2, -1)
        assert error(pair.gated(inputs), torch.nn.functional.silu(gate) * up) < 1e-5
