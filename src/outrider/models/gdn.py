"""Gated DeltaNet: the layer that keeps a matrix of each head instead of keys and values.

Queries, keys and values pass a short causal convolution, then the gated delta rule, then a norm with a gate. A pass
over a draft tree leaves a tape in the cache and the state as it is; a text that is known whole runs in chunks.
Source: Qwen3.5 as in Transformers 5.24; Gated Delta Networks (Yang et al. 2024).

Shape letters: B batch rows, N nodes, H hidden, C channels, W width of the convolution, K key heads, V value heads,
D key size, E value size, P path.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from outrider.engine.cache import Cache
from outrider.engine.recurrent import Part, RecurrentStates, States
from outrider.engine.tree import DraftTree
from outrider.kernels import gdn_tree
from outrider.kernels.delta_tree import DeltaShape, LayersTape, commit_layers
from outrider.kernels.gdn_chunk import chunk
from outrider.kernels.tree_convolution import commit_inputs, tree_convolution, window_slots
from outrider.models.config import DeltaSizes
from outrider.models.layers import BlockReader
from outrider.models.linear import Linear

LENGTH_EPS = 1e-6  # added to the square of a query's or key's length


@dataclass(frozen=True, slots=True)
class DeltaBlock:
    """Weights of one layer; queries, keys, values, gates and what decay and beta come from as one linear.

    Attributes:
        layer: its number.
        convolution: [C, W], float32.
        decay_rate: [V] exp(A_log), float32.
        decay_bias: [V], float32.
        head_norm: [E] shared by all heads, float32.
    """

    layer: int
    mixer_norm: Tensor
    inputs: Linear
    convolution: Tensor
    decay_rate: Tensor
    decay_bias: Tensor
    head_norm: Tensor
    output: Linear
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear


def read_delta_block(reader: BlockReader, layer: int) -> DeltaBlock:
    """Read the layer of this number."""
    prefix = f"model.layers.{layer}."
    mixer = f"{prefix}linear_attn."
    return DeltaBlock(
        layer=layer,
        mixer_norm=reader.norm(f"{prefix}input_layernorm.weight"),
        inputs=reader.linear(*(f"{mixer}in_proj_{part}" for part in ("qkv", "z", "b", "a"))),
        convolution=reader.exact(f"{mixer}conv1d.weight")[:, 0],
        decay_rate=reader.exact(f"{mixer}A_log").exp(),
        decay_bias=reader.exact(f"{mixer}dt_bias"),
        head_norm=reader.exact(f"{mixer}norm.weight"),
        output=reader.linear(f"{mixer}out_proj"),
        mlp_norm=reader.norm(f"{prefix}post_attention_layernorm.weight"),
        gate_up=reader.linear(f"{prefix}mlp.gate_proj", f"{prefix}mlp.up_proj"),
        down=reader.linear(f"{prefix}mlp.down_proj"),
    )


def new_states(
    sizes: DeltaSizes, layers: frozenset[int], *, slots: int, activations: torch.dtype, device: torch.device
) -> RecurrentStates:
    """Room for the matrix of each head, in float32 at least, and for the last inputs of the convolution."""
    matrix = (sizes.value_heads, sizes.key_size, sizes.value_size)
    parts = (
        Part(matrix, torch.promote_types(activations, torch.float32)),
        Part((sizes.convolution - 1, sizes.channels), activations),
    )
    return RecurrentStates(sorted(layers), slots=slots, parts=parts, device=device)


class JointTape(NamedTuple):
    """What a pass of fused kernels leaves of all layers (see ``engine.recurrent.JointTape``)."""

    shape: DeltaShape
    rule: LayersTape

    def commit(self, states: States, path_BP: Tensor, counts_B: Tensor) -> None:
        """Advance the states of all layers in place, by one launch a kind."""
        states_LBVDE, stored_LBXC = states
        commit_layers(self.shape, states_LBVDE, stored_LBXC, self.rule, path_BP, counts_B)


@dataclass(frozen=True, slots=True)
class Lineage:
    """What all layers of one pass share: who descends from whom.

    Attributes:
        sees_BNN: whether node j is an ancestor of node i, or i itself.
        slots_BNW: where each node's convolution reads.
        kept: whether all real nodes will be committed.
        real_BN: which nodes are real.
        starts_BN: nodes at which a text begins anew, the first of a row not among them.
        counts_B: real nodes.
        tape: takes what all layers write, where fused kernels run them.
    """

    sees_BNN: Tensor
    slots_BNW: Tensor
    kept: bool
    real_BN: Tensor
    starts_BN: Tensor
    counts_B: Tensor
    tape: JointTape | None = None

    @classmethod
    def of(cls, tree: DraftTree, sizes: DeltaSizes) -> "Lineage":
        """Read it off a tree."""
        order_N = torch.arange(tree.width, device=tree.depths_BN.device)
        return cls(
            tree.visible_BNN,
            window_slots(tree.parents_BN, tree.depths_BN, sizes.convolution),
            tree.kept,
            order_N < tree.counts_B[:, None],
            (tree.depths_BN == 0) & (order_N > 0),
            tree.counts_B,
        )


@dataclass(frozen=True, slots=True)
class TreeTape:
    """What a pass over a tree leaves: enough to commit any path (see ``engine.recurrent.Tape``)."""

    rule: gdn_tree.Tape
    inputs_BXC: Tensor

    def play(self, states: States, path_BP: Tensor, counts_B: Tensor) -> States:
        """Return the states after the first ``counts`` nodes of each path."""
        state_BVDE, stored_BXC = states
        return (
            gdn_tree.commit(state_BVDE, self.rule, path_BP, counts_B),
            commit_inputs(self.inputs_BXC, stored_BXC.shape[1] + 1, path_BP, counts_B),
        )


@dataclass(frozen=True, slots=True)
class WholeTape:
    """What a pass over a known text leaves: the states after all of it."""

    states: States

    def play(self, states: States, path_BP: Tensor, counts_B: Tensor) -> States:  # noqa: ARG002 -- all was kept
        """Return the states after the text."""
        return self.states


class RuleInputs(NamedTuple):
    """What the rule takes of each node, as the kernels take it."""

    query_BNKD: Tensor
    key_BNKD: Tensor
    value_BNVE: Tensor
    log_decay_BNV: Tensor
    beta_BNV: Tensor


def delta(  # noqa: PLR0917 -- as ``attend``
    normed_BNH: Tensor, block: DeltaBlock, sizes: DeltaSizes, eps: float, rows: slice, cache: Cache, lineage: Lineage
) -> Tensor:
    """Mix what each node's path holds, [B, N, H]; leaves a tape in the cache.

    Args:
        normed_BNH: input, after its norm.
        block: weights.
        sizes: of the layer.
        eps: what the heads' norm adds to the mean square.
        rows: slots of the batch.
        cache: what is committed.
        lineage: who descends from whom.
    """
    assert cache.states is not None  # noqa: S101 -- made by the decoder that calls
    state_BVDE, stored_BXC = cache.states.read(block.layer, rows)
    values = sizes.value_heads * sizes.value_size
    projected = block.inputs(normed_BNH.reshape(-1, normed_BNH.shape[-1])).view(*normed_BNH.shape[:2], -1)
    inputs_BNC, gate, beta, decay = projected.split_with_sizes(
        (sizes.channels, values, sizes.value_heads, sizes.value_heads), -1
    )
    inputs_BXC = torch.cat((stored_BXC, inputs_BNC), 1)
    mixed_BNC = tree_convolution(inputs_BXC, block.convolution, lineage.slots_BNW)
    rule = _rule_inputs(mixed_BNC, beta, decay, block, sizes)
    if lineage.kept:
        out_BNVE, after = _along_text(rule, state_BVDE, lineage)
        order_BN = torch.arange(inputs_BNC.shape[1], device=inputs_BNC.device).expand(inputs_BNC.shape[:2])
        stored = commit_inputs(inputs_BXC, sizes.convolution, order_BN, lineage.counts_B)
        cache.states.leave(block.layer, WholeTape((after, stored)))
    else:
        out_BNVE, tape = gdn_tree.tree(*rule, state_BVDE, lineage.sees_BNN)
        cache.states.leave(block.layer, TreeTape(tape, inputs_BXC))
    normed = functional.rms_norm(out_BNVE, block.head_norm.shape, block.head_norm, eps)
    gated = normed * functional.silu(gate.to(normed.dtype).view(normed.shape))
    return block.output(gated.to(normed_BNH.dtype).view(-1, values)).view(normed_BNH.shape)


def _rule_inputs(
    mixed_BNC: Tensor, beta_BNV: Tensor, decay_BNV: Tensor, block: DeltaBlock, sizes: DeltaSizes
) -> RuleInputs:
    """Make what the kernels take."""
    keys = sizes.key_heads * sizes.key_size
    query, key, value = mixed_BNC.split_with_sizes((keys, keys, sizes.value_heads * sizes.value_size), -1)
    heads_BNKD = (*mixed_BNC.shape[:2], sizes.key_heads, sizes.key_size)
    log_decay = -block.decay_rate * functional.softplus(decay_BNV.to(mixed_BNC.dtype) + block.decay_bias)
    return RuleInputs(
        _unit(query.view(heads_BNKD)) * sizes.key_size**-0.5,
        _unit(key.view(heads_BNKD)),
        value.view(*mixed_BNC.shape[:2], sizes.value_heads, sizes.value_size),
        log_decay,
        beta_BNV.to(mixed_BNC.dtype).sigmoid(),
    )


def _unit(heads: Tensor) -> Tensor:
    """Heads of length 1."""
    return heads * torch.rsqrt(heads.square().sum(-1, keepdim=True) + LENGTH_EPS)


def _along_text(rule: RuleInputs, state_BVDE: Tensor, lineage: Lineage) -> tuple[Tensor, Tensor]:
    """Run texts in chunks; what pads a row decays nothing and writes nothing."""
    real_BN1 = lineage.real_BN[..., None]
    rule = rule._replace(log_decay_BNV=rule.log_decay_BNV * real_BN1, beta_BNV=rule.beta_BNV * real_BN1)
    return chunk(*rule, state_BVDE, lineage.starts_BN)
