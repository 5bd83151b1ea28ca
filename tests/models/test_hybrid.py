"""Qwen3.5 in float64 against Transformers with float64 internals: outputs and committed states over many rounds."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from models.peers import SIZES, VARIANTS
from models.wide import doubled
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from outrider.engine.tree import DraftTree, Proposal
from outrider.engine.walk import whole
from outrider.models.decoder import Decoder
from outrider.models.loading import decoder_config

ROUNDS, NODES, LAYERS = 50, 12, 8
CPU = torch.device("cpu")
EXACT = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(scope="module")
def pair():
    family, options = VARIANTS["qwen3_5"]
    torch.manual_seed(7)
    sizes = {**SIZES, **options, "num_hidden_layers": LAYERS, "max_position_embeddings": 512}
    config = AutoConfig.for_model(family, **sizes)
    config._attn_implementation = "eager"
    with doubled():
        theirs = AutoModelForCausalLM.from_config(config).double().eval()
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter.normal_(std=0.2) if parameter.dim() > 1 else parameter.add_(0.2 * torch.randn_like(parameter))
    state = theirs.state_dict()
    ours = Decoder(decoder_config(config.to_dict()), state.__getitem__, dtype=torch.float64, device=CPU)
    return theirs, ours


@torch.inference_mode()
def theirs_after(model, text: list[int]):
    """Logits of the whole text, and what their cache holds after it."""
    cache = DynamicCache(config=model.config)
    with doubled():
        return model(torch.tensor([text]), cache=cache, use_cache=True).logits[0], cache


def random_tree(rng: np.random.Generator, anchor: int) -> DraftTree:
    count = int(rng.integers(0, NODES))
    parents = tuple(int(rng.integers(max(0, node - 3), node)) for node in range(1, count + 1))
    tokens = tuple(rng.permutation(SIZES["vocab_size"])[:count].tolist())
    return DraftTree.of([anchor], [Proposal(tokens, parents)], CPU)


def check_states(cache, theirs, slot: int, done: int) -> None:
    rows = slice(slot, slot + 1)
    for layer, held in enumerate(theirs.layers):
        if layer in cache.layers:
            key, value = cache.read(layer, rows, slice(done))
            torch.testing.assert_close(key, held.keys, **EXACT)
            torch.testing.assert_close(value, held.values, **EXACT)
        else:
            state, inputs = cache.states.read(layer, rows)
            torch.testing.assert_close(state, held.recurrent_states[0], **EXACT)
            torch.testing.assert_close(inputs, held.conv_states[0][..., -inputs.shape[1] :].mT, **EXACT)


@torch.inference_mode()
def test_fifty_rounds_of_random_acceptance_leave_transformers_states(pair):
    theirs, ours = pair
    rng = np.random.default_rng(3)
    text = rng.integers(0, SIZES["vocab_size"], 70).tolist()
    cache = ours.new_cache(slots=2, max_len=512)
    rows = slice(1, 2)  # the other slot stays empty
    tree = DraftTree.chain(torch.tensor([text]))
    out = ours.forward(tree, cache, rows, torch.tensor([0]), span=tree.width)
    cache.commit(rows, torch.tensor([0]), whole(tree).path_BN, tree.counts_B, in_place=True)
    wanted, held = theirs_after(theirs, text)
    torch.testing.assert_close(ours.logits(out.hidden_BNH)[0], wanted, **EXACT)
    for _ in range(ROUNDS):
        check_states(cache, held, 1, len(text))
        tree = random_tree(rng, int(rng.integers(SIZES["vocab_size"])))
        lengths = torch.tensor([len(text)])
        out = ours.forward(tree, cache, rows, lengths, span=len(text) + tree.width)
        path = tree.visible_BNN[0, int(rng.integers(tree.width))].nonzero()[:, 0]
        rest = torch.zeros(tree.width - len(path), dtype=torch.int64)
        cache.commit(rows, lengths, torch.cat((path, rest))[None], torch.tensor([len(path)]), in_place=False)
        text += tree.tokens_BN[0, path].tolist()
        wanted, held = theirs_after(theirs, text)
        torch.testing.assert_close(ours.logits(out.hidden_BNH)[0, path], wanted[-len(path) :], **EXACT)
    check_states(cache, held, 1, len(text))
    assert not any(
        state[0].any() for layer in ours.config.delta_layers for state in cache.states.read(layer, slice(0, 1))
    )


@torch.inference_mode()
def test_half_precision_keeps_its_states_in_single_and_loses_no_more_than_transformers(pair):
    theirs, exact = pair
    state = theirs.state_dict()
    half = Decoder(exact.config, state.__getitem__, dtype=torch.bfloat16, device=CPU)
    tokens = np.random.default_rng(4).integers(0, SIZES["vocab_size"], (6, 40))
    tree, rows, nothing = DraftTree.chain(torch.from_numpy(tokens)), slice(0, 6), torch.zeros(6, dtype=torch.int64)
    said = []
    for model in (half, exact):
        cache = model.new_cache(slots=6, max_len=40)
        out = model.forward(tree, cache, rows, nothing, span=40)
        cache.commit(rows, nothing, whole(tree).path_BN, tree.counts_B, in_place=True)
        said.append((model.logits(out.hidden_BNH).double(), *cache.states.read(0, rows)))
        assert out.hidden_BNH.dtype == model.activations
    (logits, matrix, inputs), (wanted_logits, wanted, _) = said
    assert (matrix.dtype, inputs.dtype) == (torch.float32, torch.bfloat16)
    assert float((matrix - wanted).norm() / wanted.norm()) < 0.05
    # No further from float64 than Transformers in the same precision.
    theirs_half = deepcopy(theirs).to(torch.bfloat16)(tree.tokens_BN).logits.double()
    assert float((logits - wanted_logits).norm()) < 1.2 * float((theirs_half - wanted_logits).norm())
