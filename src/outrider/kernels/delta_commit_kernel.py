"""The Triton kernels of ``delta_tree`` that commit a walked path: states of all layers in one launch, inputs in one.

Only ``delta_tree`` imports them, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin


@triton.jit
def commit_states_kernel(
    state,
    tape_key,
    tape_update,
    tape_decay,
    path,
    counts,
    rows,
    nodes,
    length,
    state_layer,
    state_slot,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
    KEY_SIZE: tl.constexpr,
    VALUE_SIZE: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Walk a path: decay, then add what the node wrote. One program a layer, row, head and part of the values."""
    begin(EARLY)
    layer_row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    layer, row = layer_row // rows, layer_row % rows
    count = tl.load(counts + row)
    if count > 0:
        dim, wide = tl.arange(0, KEY_WIDTH), tl.program_id(2) * WIDE + tl.arange(0, WIDE)
        real_dim, real_wide = dim < KEY_SIZE, wide < VALUE_SIZE
        inside = real_dim[:, None] & real_wide[None, :]
        at = state + layer * state_layer + row * state_slot + head * KEY_SIZE * VALUE_SIZE
        at = at + dim[:, None] * VALUE_SIZE + wide[None, :]
        s = tl.load(at, mask=inside, other=0.0)
        for step in range(count):
            vector = layer_row * nodes + tl.load(path + row * length + step)
            decay = tl.load(tape_decay + vector * VALUES + head)
            key_head = head // (VALUES // KEYS)
            k = tl.load(tape_key + (vector * KEYS + key_head) * KEY_SIZE + dim, mask=real_dim, other=0.0)
            u = tl.load(tape_update + (vector * VALUES + head) * VALUE_SIZE + wide, mask=real_wide, other=0.0)
            s = s * tl.exp(decay) + k[:, None] * u[None, :]
        tl.store(at, s, mask=inside)


@triton.jit
def commit_inputs_kernel(
    stored,
    tape_inputs,
    path,
    counts,
    rows,
    nodes,
    length,
    stored_layer,
    stored_slot,
    channels,
    KEPT: tl.constexpr,
    KEPT_WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Keep the last inputs of [stored | path]; all are read before any is written."""
    begin(EARLY)
    layer_row = tl.program_id(0).to(tl.int64)
    layer, row = layer_row // rows, layer_row % rows
    count = tl.load(counts + row)
    kept, channel = tl.arange(0, KEPT_WIDTH), tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = (kept < KEPT)[:, None] & (channel < channels)[None, :]
    source = count + kept
    old = (source < KEPT)[:, None]
    at = stored + layer * stored_layer + row * stored_slot + channel[None, :]
    node = tl.load(path + row * length + source - KEPT, mask=(kept < KEPT) & (source >= KEPT), other=0)
    new_at = tape_inputs + ((layer_row * nodes + node) * channels)[:, None] + channel[None, :]
    values = tl.load(at + (source * channels)[:, None], mask=inside & old, other=0.0)
    values += tl.load(new_at, mask=inside & (source >= KEPT)[:, None], other=0.0)
    tl.debug_barrier()
    tl.store(at + (kept * channels)[:, None], values, mask=inside)
