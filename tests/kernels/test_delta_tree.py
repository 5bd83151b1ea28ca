"""The fused Gated DeltaNet kernel and its commit against the plain computations one after the other."""

import pytest
import torch
from kernels.on_device import DEVICE, HALF, error, needs_triton
from kernels.trees import KINDS, padded, random_trees
from torch.nn import functional

from outrider.kernels import gdn_tree
from outrider.kernels.delta_tree import (
    Committed,
    DeltaShape,
    DeltaWeights,
    Descent,
    LayersTape,
    commit_layers,
    delta_tree,
)
from outrider.kernels.tree_convolution import commit_inputs, tree_convolution, window_slots

pytestmark = needs_triton
SMALL = DeltaShape(2, 6, 8, 12, 4)
FULL = DeltaShape(2, 6, 128, 128, 4)
EPS = 1e-6


class Layer:
    """Random weights, states and projections, and the plain computation in float64."""

    def __init__(self, shape, kind, nodes, dtype, *, alike=0.0, seed=0, layers=1):
        gen = torch.Generator().manual_seed(seed)

        def draw(*size):
            return torch.randn(*size, generator=gen).to(DEVICE)

        self.shape, self.trees = shape, random_trees(kind, nodes, seed=seed)
        values = shape.values * shape.value_size
        projected = draw(2, nodes, shape.channels + values + 2 * shape.values)
        common = draw(1, 1, 2 * shape.keys * shape.key_size)
        projected[..., : common.shape[-1]] += alike * common
        self.projected = projected.to(dtype)
        self.weights = DeltaWeights(
            draw(shape.channels, shape.width),
            draw(shape.values).exp(),
            draw(shape.values),
            1 + 0.3 * draw(shape.value_size),
        )
        self.states = draw(layers, 5, shape.values, shape.key_size, shape.value_size)
        self.stored = draw(layers, 5, shape.width - 1, shape.channels).to(dtype)
        self.sees = self.trees.sees.to(DEVICE)
        self.slots = window_slots(self.trees.parents, self.trees.depths, shape.width).to(DEVICE)

    def plain(self, layer=0):
        """Outputs, the rule's tape, and the raw inputs."""
        shape, x = self.shape, self.projected.double()
        factors, rate, bias, norm = (weight.double() for weight in self.weights)
        values = shape.values * shape.value_size
        inputs, gate, beta, decay = x.split((shape.channels, values, shape.values, shape.values), -1)
        both = torch.cat((self.stored[layer, 1:3].double(), inputs), 1)
        mixed = tree_convolution(both, factors, self.slots)
        keys = shape.keys * shape.key_size
        query, key = (
            part / (part.square().sum(-1, keepdim=True) + 1e-6).sqrt()
            for part in mixed[..., : 2 * keys].view(*x.shape[:2], 2, shape.keys, shape.key_size).unbind(2)
        )
        out, tape = gdn_tree.tree(
            query * shape.key_size**-0.5,
            key,
            mixed[..., 2 * keys :].view(*x.shape[:2], shape.values, -1),
            -rate * functional.softplus(decay + bias),
            beta.sigmoid(),
            self.states[layer, 1:3].double(),
            self.sees,
        )
        normed = functional.rms_norm(out, norm.shape, norm, EPS)
        return (normed * functional.silu(gate.view(normed.shape))).flatten(2), tape, inputs

    def fused(self, tape, layer=0):
        committed = Committed(self.states[layer, 1:3], self.stored[layer, 1:3])
        descent = Descent(self.sees, self.slots)
        return delta_tree(self.projected, self.shape, self.weights, committed, descent, tape, layer, EPS)


def largest(dtype):
    return 2e-5 if dtype == torch.float32 else 6e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [1, 5, 17, 64])
@pytest.mark.parametrize("alike", [0.0, 2.0])
def test_equals_the_plain_computations(kind, nodes, alike):
    layer = Layer(SMALL, kind, nodes, torch.float32, alike=alike, seed=nodes)
    tape = LayersTape.new(SMALL, 1, 2, nodes, layer.projected)
    found = layer.fused(tape)
    wanted, kept, inputs = layer.plain()
    assert error(found, wanted) < largest(torch.float32)
    for held, plain in zip(tape, (*kept, inputs), strict=True):
        assert error(held[0], plain) < largest(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, HALF])
@pytest.mark.parametrize("nodes", [1, 16, 64])
def test_heads_of_full_size(dtype, nodes):
    layer = Layer(FULL, "deep", nodes, dtype, seed=3)
    found = layer.fused(LayersTape.new(FULL, 1, 2, nodes, layer.projected))
    assert error(found, layer.plain()[0]) < largest(dtype)


def test_commits_a_path_in_all_layers():
    layers, nodes = 2, 20
    layer = Layer(SMALL, "any", nodes, HALF, seed=4, layers=layers)
    tape = LayersTape.new(SMALL, layers, 2, nodes, layer.projected)
    for place in range(layers):
        layer.fused(tape, place)
    before, stored = layer.states.clone(), layer.stored.clone()
    for counts in ([4, 1], [0, 2], [3, 3]):
        layer.states.copy_(before)
        layer.stored.copy_(stored)
        path, _ = padded([layer.trees.path(row, int(layer.trees.depths[row].argmax())) for row in range(2)])
        path, count = path.to(DEVICE), torch.tensor(counts, device=DEVICE)
        commit_layers(SMALL, layer.states[:, 1:3], layer.stored[:, 1:3], tape, path, count)
        for place in range(layers):
            kept = gdn_tree.Tape(*(part[place].double() for part in tape[:3]))
            wanted = gdn_tree.commit(before[place, 1:3].double(), kept, path, count)
            assert error(layer.states[place, 1:3], wanted) < largest(torch.float32)
            both = torch.cat((stored[place, 1:3], tape.inputs_LBNC[place]), 1)
            inputs = commit_inputs(both, SMALL.width, path, count)
            assert torch.equal(layer.stored[place, 1:3], inputs)
        assert torch.equal(layer.states[:, [0, 3, 4]], before[:, [0, 3, 4]])
        assert torch.equal(layer.stored[:, [0, 3, 4]], stored[:, [0, 3, 4]])
