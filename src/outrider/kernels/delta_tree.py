"""A Gated DeltaNet layer between its projections, over a draft tree, in one launch; and the commit of all layers.

Convolution along paths, unit queries and keys, decay and beta, the delta rule in its tree form, the heads' norm and
gate: what ``tree_convolution``, ``gdn_tree`` and the layer do one after the other in plain PyTorch. A pass leaves what
the nodes wrote in a tape of all layers, and one launch commits a path in all of them. The kernels are in
``delta_tree_kernel`` and ``delta_commit_kernel``.
Shape letters: L layers, B batch rows, N nodes, P path, K key heads, V value heads, D key size, E value size, C channels
of the convolution, W its width, X all that is projected: C, then V E gates, V betas, V decays.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from outrider.kernels.launch import SMALLEST, early, interpreted, power, room, tile

MOST_NODES = 64  # of one system that is solved in a program's registers


class DeltaShape(NamedTuple):
    """Sizes of a layer: heads, their sizes, width of the convolution."""

    keys: int
    values: int
    key_size: int
    value_size: int
    width: int

    @property
    def channels(self) -> int:
        """C."""
        return 2 * self.keys * self.key_size + self.values * self.value_size


class DeltaWeights(NamedTuple):
    """What a layer has beside its projections, float32.

    Attributes:
        factors_CW: of the convolution, the node's own last.
        decay_rate_V: exp(A_log).
        decay_bias_V: added before softplus.
        head_norm_E: scales the heads' norm.
    """

    factors_CW: Tensor
    decay_rate_V: Tensor
    decay_bias_V: Tensor
    head_norm_E: Tensor


class LayersTape(NamedTuple):
    """What a pass leaves of each node in each layer: float32, but for the inputs of the convolution."""

    key_LBNKD: Tensor
    update_LBNVE: Tensor
    log_decay_LBNV: Tensor
    inputs_LBNC: Tensor

    @classmethod
    def new(cls, shape: DeltaShape, layers: int, rows: int, nodes: int, like: Tensor) -> "LayersTape":
        """Room for one pass; ``like`` gives the type of inputs and the device."""
        exact = torch.float32
        return cls(
            like.new_empty(layers, rows, nodes, shape.keys, shape.key_size, dtype=exact),
            like.new_empty(layers, rows, nodes, shape.values, shape.value_size, dtype=exact),
            like.new_empty(layers, rows, nodes, shape.values, dtype=exact),
            like.new_empty(layers, rows, nodes, shape.channels),
        )


class Committed(NamedTuple):
    """What is committed in one layer, views of the batch's slots: states [B, V, D, E] and stored inputs [B, W-1, C]."""

    state_BVDE: Tensor
    stored_BXC: Tensor


class Descent(NamedTuple):
    """Who descends from whom: ``sees`` as in ``gdn_tree``, ``slots`` of ``tree_convolution.window_slots``."""

    sees_BNN: Tensor
    slots_BNW: Tensor


def delta_tree(  # noqa: PLR0917 -- the parts of a layer
    projected_BNX: Tensor,
    shape: DeltaShape,
    weights: DeltaWeights,
    committed: Committed,
    descent: Descent,
    tape: LayersTape,
    layer: int,
    eps: float,
) -> Tensor:
    """Run every node, [B, N, V * E] in the type of the projections; what is committed stays as it is.

    Args:
        projected_BNX: rows of one distance, N at most ``MOST_NODES``.
        shape: of the layer.
        weights: of the layer.
        committed: float32 states, the last three axes contiguous; stored inputs, the last two.
        descent: of the nodes.
        tape: takes what the nodes write.
        layer: the layer's place in the tape.
        eps: what the heads' norm adds to the mean square.
    """
    batch, nodes, _ = projected_BNX.shape
    out = projected_BNX.new_empty(batch, nodes, shape.values * shape.value_size)
    parts = 2 if shape.value_size > 64 else 1  # noqa: PLR2004 -- half a state of 128 by 128 is what fits beside the rest
    key_tape, update_tape, decay_tape, inputs_tape = (part[layer] for part in tape)
    factors, decay_rate, decay_bias, head_norm = weights
    slots, sees = descent.slots_BNW.contiguous(), descent.sees_BNN.contiguous().view(torch.uint8)
    state, stored = committed
    grid = (batch, shape.values)
    strides = (projected_BNX.stride(1), stored.stride(0), stored.stride(1))
    sizes = {
        "KEYS": shape.keys,
        "VALUES": shape.values,
        "KEY_SIZE": shape.key_size,
        "VALUE_SIZE": shape.value_size,
        "W": shape.width,
        "NODES": tile(nodes),
        "KEY_WIDTH": tile(shape.key_size),
        # float32 by tensor cores, in parts: all digits where float32 flows, sixteen bits where half precision does.
        # Triton's interpreter knows no bf16x3 and computes tf32x3 in float32.
        "EXACT": "tf32x3" if projected_BNX.dtype == torch.float32 or interpreted() else "bf16x3",
    }
    values = {"PART": tile(shape.value_size) // parts, "PARTS": parts}
    few, prepare, rest, *_ = _kernels()
    launched = early(projected_BNX.device)
    if nodes <= SMALLEST:
        few[grid](
            projected_BNX, stored, state, factors, decay_rate, decay_bias, head_norm, slots, sees,
            key_tape, update_tape, decay_tape, inputs_tape, out,
            nodes, *strides, state.stride(0), eps, **sizes, **values, **launched, num_warps=4,
        )  # fmt: skip
        return out
    queries, systems, gated = _spare(projected_BNX.device, shape, batch, nodes)
    prepare[grid](
        projected_BNX, stored, factors, decay_rate, decay_bias, slots, sees,
        key_tape, decay_tape, inputs_tape, queries, systems, gated,
        nodes, *strides, **sizes, **launched, num_warps=8,
    )  # fmt: skip
    rest[grid](
        projected_BNX, stored, state, factors, head_norm, slots,
        key_tape, update_tape, inputs_tape, queries, systems, gated, out,
        nodes, *strides, state.stride(0), eps, **sizes, **values, **launched, num_warps=8,
    )  # fmt: skip
    return out


def _spare(device: torch.device, shape: DeltaShape, batch: int, nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Room for queries, two squares a head (inverse, who reads whom), two numbers a node and head."""
    width = tile(nodes)
    counts = (
        batch * nodes * shape.keys * shape.key_size,
        batch * shape.values * 2 * width * width,
        batch * shape.values * 2 * width,
    )
    spare, first, second = room(device).sums(sum(counts)), counts[0], counts[0] + counts[1]
    return spare[:first], spare[first:second], spare[second:]


def commit_layers(  # noqa: PLR0917 -- the parts of a commit
    shape: DeltaShape,
    states_LBVDE: Tensor,
    stored_LBXC: Tensor,
    tape: LayersTape,
    path_BP: Tensor,
    counts_B: Tensor,
) -> None:
    """Advance all layers along the first ``counts`` nodes of each path, in place; 0 leaves a row as it is."""
    layers, rows, nodes = tape.inputs_LBNC.shape[:3]
    path_BP, wide = path_BP.contiguous(), min(64, tile(shape.value_size))
    *_, states_kernel, inputs_kernel = _kernels()
    states_kernel[(layers * rows, shape.values, -(-shape.value_size // wide))](
        states_LBVDE,
        *tape[:3],
        path_BP,
        counts_B,
        rows,
        nodes,
        path_BP.shape[1],
        states_LBVDE.stride(0),
        states_LBVDE.stride(1),
        KEYS=shape.keys,
        VALUES=shape.values,
        KEY_SIZE=shape.key_size,
        VALUE_SIZE=shape.value_size,
        KEY_WIDTH=tile(shape.key_size),
        WIDE=wide,
        **early(path_BP.device),
        num_warps=4,
    )
    inputs_kernel[(layers * rows, -(-shape.channels // 1024))](
        stored_LBXC,
        tape.inputs_LBNC,
        path_BP,
        counts_B,
        rows,
        nodes,
        path_BP.shape[1],
        stored_LBXC.stride(0),
        stored_LBXC.stride(1),
        shape.channels,
        KEPT=shape.width - 1,
        KEPT_WIDTH=power(shape.width - 1),
        WIDE=1024,
        **early(path_BP.device),
        num_warps=4,
    )


@cache
def _kernels() -> tuple[Any, ...]:
    """Build the kernels when they are first wanted: Triton is on GPU machines alone."""
    from outrider.kernels import delta_commit_kernel as committing
    from outrider.kernels import delta_tree_kernel as built

    return (
        built.few_nodes_kernel,
        built.prepare_kernel,
        built.values_kernel,
        committing.commit_states_kernel,
        committing.commit_inputs_kernel,
    )
