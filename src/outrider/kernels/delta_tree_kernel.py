"""The Triton kernels of ``delta_tree``: one program a row and value head.

Only ``delta_tree`` imports them, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.delta_parts_kernel import convolve, read_gates, system, unit_heads
from outrider.kernels.early_kernel import begin


@triton.jit
def _keep_keys(
    tape_key,
    tape_inputs,
    k,
    mine,
    projected_row,
    vector,
    node,
    real_key,
    dim,
    key_head,
    KEYS: tl.constexpr,
    KEY_SIZE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Leave keys, and the inputs of queries and keys, in the tape."""
    tl.store(tape_key + (vector * KEYS + key_head)[:, None] * KEY_SIZE + dim[None, :], k, mask=real_key)
    for half in tl.static_range(2):
        channel = (key_head + half * KEYS) * KEY_SIZE + dim
        raw_key = tl.load(mine + (node * projected_row)[:, None] + channel[None, :], mask=real_key, other=0.0)
        tl.store(tape_inputs + (vector * CHANNELS)[:, None] + channel[None, :], raw_key, mask=real_key)


@triton.jit
def _values(
    q,
    k,
    whole,
    seen,
    along,
    beta,
    mine,
    projected_row,
    held,
    stored_row,
    factors,
    slot,
    state,
    head_norm,
    tape_update,
    tape_inputs,
    out,
    vector,
    node,
    real_node,
    dim,
    real_dim,
    head,
    eps,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
    KEY_SIZE: tl.constexpr,
    VALUE_SIZE: tl.constexpr,
    W: tl.constexpr,
    NODES: tl.constexpr,
    PART: tl.constexpr,
    PARTS: tl.constexpr,
    EXACT: tl.constexpr,
):
    """Updates, outputs, norm and gate, values in one part or two.

    Values stand in rows and nodes in columns: tensor cores want the large axis there.
    """
    CHANNELS: tl.constexpr = 2 * KEYS * KEY_SIZE + VALUES * VALUE_SIZE
    part = tl.arange(0, PART)
    faded = tl.exp(along)[None, :]
    squares = tl.zeros((NODES,), tl.float32)
    for number in tl.static_range(PARTS):
        wide = number * PART + part
        real_wide = wide < VALUE_SIZE
        real_value = real_wide[:, None] & real_node[None, :]
        at_value = 2 * KEYS * KEY_SIZE + head * VALUE_SIZE + wide
        v = convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_value, real_wide, W)
        at_state = state + wide[:, None] + dim[None, :] * VALUE_SIZE
        s = tl.load(at_state, mask=real_wide[:, None] & real_dim[None, :], other=0.0)
        right = beta[None, :] * (tl.trans(v) - faded * tl.dot(s, tl.trans(k), input_precision=EXACT))
        u = tl.dot(right, tl.trans(whole), input_precision=EXACT)
        o = faded * tl.dot(s, tl.trans(q), input_precision=EXACT) + tl.dot(u, tl.trans(seen), input_precision=EXACT)
        squares += tl.sum(o * o, 0)
        if number == 0:
            first = o
        else:
            second = o
        tl.store(tape_update + ((vector * VALUES + head) * VALUE_SIZE)[None, :] + wide[:, None], u, mask=real_value)
        raw_value = tl.load(mine + (node * projected_row)[None, :] + at_value[:, None], mask=real_value, other=0.0)
        tl.store(tape_inputs + (vector * CHANNELS)[None, :] + at_value[:, None], raw_value, mask=real_value)

    scale = tl.rsqrt(squares / VALUE_SIZE + eps)[None, :]
    for number in tl.static_range(PARTS):
        wide = number * PART + part
        real_wide = wide < VALUE_SIZE
        real_value = real_wide[:, None] & real_node[None, :]
        at_gate = (node * projected_row + CHANNELS + head * VALUE_SIZE)[None, :] + wide[:, None]
        z = tl.load(mine + at_gate, mask=real_value, other=0.0).to(tl.float32)
        weight = tl.load(head_norm + wide, mask=real_wide, other=0.0)
        if number == 0:
            o = first
        else:
            o = second
        gated = o * scale * weight[:, None] * z * tl.sigmoid(z)
        at_out = ((vector * VALUES + head) * VALUE_SIZE)[None, :] + wide[:, None]
        tl.store(out + at_out, gated.to(out.dtype.element_ty), mask=real_value)


@triton.jit
def few_nodes_kernel(
    projected,
    stored,
    state,
    factors,
    decay_rate,
    decay_bias,
    head_norm,
    slots,
    sees,
    tape_key,
    tape_update,
    tape_decay,
    tape_inputs,
    out,
    nodes,
    projected_row,
    stored_slot,
    stored_row,
    state_slot,
    eps,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
    KEY_SIZE: tl.constexpr,
    VALUE_SIZE: tl.constexpr,
    W: tl.constexpr,
    NODES: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    PART: tl.constexpr,
    PARTS: tl.constexpr,
    EXACT: tl.constexpr,
    EARLY: tl.constexpr,
):
    """All nodes of one row and value head, from one read of the committed state."""
    begin(EARLY)
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    CHANNELS: tl.constexpr = 2 * KEYS * KEY_SIZE + VALUES * VALUE_SIZE
    key_head = head // (VALUES // KEYS)
    node, dim = tl.arange(0, NODES), tl.arange(0, KEY_WIDTH)
    real_node, real_dim = node < nodes, dim < KEY_SIZE
    mine = projected + row * nodes * projected_row
    held = stored + row * stored_slot
    slot = slots + row * nodes * W
    at_query = key_head * KEY_SIZE + dim
    q, k = unit_heads(
        mine, projected_row, held, stored_row, factors, slot, node, real_node, at_query, KEYS * KEY_SIZE + at_query,
        real_dim, KEY_SIZE, W,
    )  # fmt: skip
    gates = mine + node * projected_row + CHANNELS + VALUES * VALUE_SIZE + head
    beta, decay = read_gates(gates, real_node, decay_rate, decay_bias, head, VALUES)
    sight = sees + (row * nodes + node)[:, None] * nodes + node[None, :]
    along, whole, seen = system(q, k, beta, decay, sight, node, real_node, NODES, EXACT)
    vector = row * nodes + node
    tl.store(tape_decay + vector * VALUES + head, decay, mask=real_node)
    if head % (VALUES // KEYS) == 0:
        real_key = real_node[:, None] & real_dim[None, :]
        _keep_keys(
            tape_key, tape_inputs, k, mine, projected_row, vector, node, real_key, dim, key_head, KEYS, KEY_SIZE,
            CHANNELS,
        )  # fmt: skip
    at_state = state + row * state_slot + head * KEY_SIZE * VALUE_SIZE
    _values(
        q, k, whole, seen, along, beta, mine, projected_row, held, stored_row, factors, slot, at_state, head_norm,
        tape_update, tape_inputs, out, vector, node, real_node, dim, real_dim, head, eps,
        KEYS, VALUES, KEY_SIZE, VALUE_SIZE, W, NODES, PART, PARTS, EXACT,
    )  # fmt: skip


@triton.jit
def prepare_kernel(
    projected,
    stored,
    factors,
    decay_rate,
    decay_bias,
    slots,
    sees,
    tape_key,
    tape_decay,
    tape_inputs,
    queries,
    systems,
    gated,
    nodes,
    projected_row,
    stored_slot,
    stored_row,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
    KEY_SIZE: tl.constexpr,
    VALUE_SIZE: tl.constexpr,
    W: tl.constexpr,
    NODES: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    EXACT: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Of many nodes what does not depend on values: a program would not hold both that and the values."""
    begin(EARLY)
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    CHANNELS: tl.constexpr = 2 * KEYS * KEY_SIZE + VALUES * VALUE_SIZE
    key_head = head // (VALUES // KEYS)
    node, dim = tl.arange(0, NODES), tl.arange(0, KEY_WIDTH)
    real_node, real_dim = node < nodes, dim < KEY_SIZE
    mine = projected + row * nodes * projected_row
    slot = slots + row * nodes * W
    at_query = key_head * KEY_SIZE + dim
    q, k = unit_heads(
        mine, projected_row, stored + row * stored_slot, stored_row, factors, slot, node, real_node, at_query,
        KEYS * KEY_SIZE + at_query, real_dim, KEY_SIZE, W,
    )  # fmt: skip
    gates = mine + node * projected_row + CHANNELS + VALUES * VALUE_SIZE + head
    beta, decay = read_gates(gates, real_node, decay_rate, decay_bias, head, VALUES)
    sight = sees + (row * nodes + node)[:, None] * nodes + node[None, :]
    along, whole, seen = system(q, k, beta, decay, sight, node, real_node, NODES, EXACT)
    vector = row * nodes + node
    tl.store(tape_decay + vector * VALUES + head, decay, mask=real_node)
    both = gated + (row * VALUES + head) * 2 * NODES + node
    tl.store(both, along)
    tl.store(both + NODES, beta)
    square = systems + (row * VALUES + head) * 2 * NODES * NODES + node[:, None] * NODES + node[None, :]
    tl.store(square, whole)
    tl.store(square + NODES * NODES, seen)
    if head % (VALUES // KEYS) == 0:
        real_key = real_node[:, None] & real_dim[None, :]
        tl.store(queries + (vector * KEYS + key_head)[:, None] * KEY_SIZE + dim[None, :], q, mask=real_key)
        _keep_keys(
            tape_key, tape_inputs, k, mine, projected_row, vector, node, real_key, dim, key_head, KEYS, KEY_SIZE,
            CHANNELS,
        )  # fmt: skip


@triton.jit
def values_kernel(
    projected,
    stored,
    state,
    factors,
    head_norm,
    slots,
    tape_key,
    tape_update,
    tape_inputs,
    queries,
    systems,
    gated,
    out,
    nodes,
    projected_row,
    stored_slot,
    stored_row,
    state_slot,
    eps,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
    KEY_SIZE: tl.constexpr,
    VALUE_SIZE: tl.constexpr,
    W: tl.constexpr,
    NODES: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    PART: tl.constexpr,
    PARTS: tl.constexpr,
    EXACT: tl.constexpr,
    EARLY: tl.constexpr,
):
    """The rest of many nodes, from what ``prepare_kernel`` left."""
    begin(EARLY)
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    key_head = head // (VALUES // KEYS)
    node, dim = tl.arange(0, NODES), tl.arange(0, KEY_WIDTH)
    real_node, real_dim = node < nodes, dim < KEY_SIZE
    vector = row * nodes + node
    at_key = (vector * KEYS + key_head)[:, None] * KEY_SIZE + dim[None, :]
    real_key = real_node[:, None] & real_dim[None, :]
    q = tl.load(queries + at_key, mask=real_key, other=0.0)
    k = tl.load(tape_key + at_key, mask=real_key, other=0.0)
    both = gated + (row * VALUES + head) * 2 * NODES + node
    along, beta = tl.load(both), tl.load(both + NODES)
    square = systems + (row * VALUES + head) * 2 * NODES * NODES + node[:, None] * NODES + node[None, :]
    whole, seen = tl.load(square), tl.load(square + NODES * NODES)
    at_state = state + row * state_slot + head * KEY_SIZE * VALUE_SIZE
    mine = projected + row * nodes * projected_row
    _values(
        q, k, whole, seen, along, beta, mine, projected_row, stored + row * stored_slot, stored_row, factors,
        slots + row * nodes * W, at_state, head_norm, tape_update, tape_inputs, out, vector, node, real_node, dim,
        real_dim, head, eps, KEYS, VALUES, KEY_SIZE, VALUE_SIZE, W, NODES, PART, PARTS, EXACT,
    )  # fmt: skip
