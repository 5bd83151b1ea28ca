"""The Triton kernels of ``delta_tree``: one program a row and value head; commits for all layers at once.

Only ``delta_tree`` imports them, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def _convolve(
    inputs, inputs_row, stored, stored_row, factors, slots, node, real_node, channel, real_channel, W: tl.constexpr
):
    """Each node's window is its own path; behind the root it goes on through the stored inputs. SiLU of the sum."""
    inside = real_node[:, None] & real_channel[None, :]
    total = tl.zeros(inside.shape, tl.float32)
    for place in tl.static_range(W):
        slot = tl.load(slots + node * W + place, mask=real_node, other=0)
        old = (slot < W - 1)[:, None]
        before = tl.load(stored + slot[:, None] * stored_row + channel[None, :], mask=inside & old, other=0.0)
        above = (slot - (W - 1))[:, None] * inputs_row + channel[None, :]
        value = before + tl.load(inputs + above, mask=inside & (slot >= W - 1)[:, None], other=0.0)
        factor = tl.load(factors + channel * W + place, mask=real_channel, other=0.0)
        total += value.to(tl.float32) * factor[None, :]
    return total * tl.sigmoid(total)


@triton.jit
def _softplus(x):
    """log(1 + exp(x)), to the last digits also where exp(x) is far below 1."""
    small = tl.exp(tl.minimum(x, 20.0))
    more = 1.0 + small
    above = tl.where(more == 1.0, 1.0, more - 1.0)
    return tl.where(x > 20.0, x, tl.where(more == 1.0, small, tl.log(more) * small / above))


@triton.jit
def _invert(below, NODES: tl.constexpr, EXACT: tl.constexpr):
    """Prepare (1 + below) x = right, ``below`` strictly lower triangular: D, the inverse of its diagonal blocks of 16.

    Blocks by substitution. With M = D times the rest, x = (1 - M)(1 + M^2) D right: M has at most four levels of
    blocks, so its powers end there. Returns D, M, M^2.
    """
    BLOCKS: tl.constexpr = NODES // 16
    block, inner = tl.arange(0, BLOCKS), tl.arange(0, 16)
    same = (block[:, None] == block[None, :])[:, None, :, None]
    cut = tl.reshape(below, (BLOCKS, 16, BLOCKS, 16))
    diagonal = tl.sum(tl.where(same, cut, 0.0), 2)
    one = tl.where(inner[:, None] == inner[None, :], 1.0, 0.0)
    inverse = one[None, :, :] + tl.zeros((BLOCKS, 16, 16), tl.float32)
    for step in range(1, 16):
        here = (inner == step)[None, :, None]
        factors = tl.sum(tl.where(here, diagonal, 0.0), 1)
        found = tl.sum(factors[:, :, None] * inverse, 1)
        inverse = tl.where(here, inverse - found[:, None, :], inverse)
    whole = tl.reshape(tl.where(same, inverse[:, :, None, :], 0.0), (NODES, NODES))
    between = whole
    twice = whole
    if BLOCKS > 1:
        rest = tl.reshape(tl.where(same, 0.0, cut), (NODES, NODES))
        between = tl.dot(whole, rest, input_precision=EXACT)
        if BLOCKS > 2:
            twice = tl.dot(between, between, input_precision=EXACT)
    return whole, between, twice


@triton.jit
def _solve(whole, between, twice, right, NODES: tl.constexpr, EXACT: tl.constexpr):
    """Finish what ``_invert`` prepared."""
    result = tl.dot(whole, right, input_precision=EXACT)
    if NODES > 32:
        result += tl.dot(twice, result, input_precision=EXACT)
    if NODES > 16:
        result -= tl.dot(between, result, input_precision=EXACT)
    return result


@triton.jit
def delta_tree_kernel(
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
):
    """All nodes of one row and value head, from one read of the committed state, values in one part or two."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    SHARED: tl.constexpr = VALUES // KEYS
    CHANNELS: tl.constexpr = 2 * KEYS * KEY_SIZE + VALUES * VALUE_SIZE
    key_head = head // SHARED
    node, dim = tl.arange(0, NODES), tl.arange(0, KEY_WIDTH)
    real_node, real_dim = node < nodes, dim < KEY_SIZE
    real_key = real_node[:, None] & real_dim[None, :]
    mine = projected + row * nodes * projected_row
    held = stored + row * stored_slot
    slot = slots + row * nodes * W

    at_query = key_head * KEY_SIZE + dim
    at_key = KEYS * KEY_SIZE + at_query
    q = _convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_query, real_dim, W)
    k = _convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_key, real_dim, W)
    q *= (tl.rsqrt(tl.sum(q * q, 1) + 1e-6) * (KEY_SIZE**-0.5))[:, None]
    k *= tl.rsqrt(tl.sum(k * k, 1) + 1e-6)[:, None]

    gates = mine + node * projected_row + CHANNELS + VALUES * VALUE_SIZE + head
    beta = tl.sigmoid(tl.load(gates, mask=real_node, other=0.0).to(tl.float32))
    raw = tl.load(gates + VALUES, mask=real_node, other=0.0).to(tl.float32) + tl.load(decay_bias + head)
    decay = tl.where(real_node, -tl.load(decay_rate + head) * _softplus(raw), 0.0)
    sight = sees + (row * nodes + node)[:, None] * nodes + node[None, :]
    ancestor = tl.load(sight, mask=real_node[:, None] & real_node[None, :], other=0) != 0
    along = tl.sum(tl.where(ancestor, decay[None, :], 0.0), 1)
    between = tl.where(ancestor, tl.exp(tl.where(ancestor, along[:, None] - along[None, :], 0.0)), 0.0)
    faded = tl.exp(along)[:, None]
    below = beta[:, None] * tl.dot(k, tl.trans(k), input_precision=EXACT) * between
    below = tl.where(node[:, None] == node[None, :], 0.0, below)
    whole, blocks, twice = _invert(below, NODES, EXACT)
    seen = tl.dot(q, tl.trans(k), input_precision=EXACT) * between

    vector = row * nodes + node
    tl.store(tape_decay + vector * VALUES + head, decay, mask=real_node)
    if head % SHARED == 0:
        tl.store(tape_key + (vector * KEYS + key_head)[:, None] * KEY_SIZE + dim[None, :], k, mask=real_key)
        for half in tl.static_range(2):
            channel = at_query + half * KEYS * KEY_SIZE
            raw_key = tl.load(mine + (node * projected_row)[:, None] + channel[None, :], mask=real_key, other=0.0)
            tl.store(tape_inputs + (vector * CHANNELS)[:, None] + channel[None, :], raw_key, mask=real_key)

    part = tl.arange(0, PART)
    squares = tl.zeros((NODES,), tl.float32)
    for number in tl.static_range(PARTS):
        wide = number * PART + part
        real_wide = wide < VALUE_SIZE
        real_value = real_node[:, None] & real_wide[None, :]
        at_value = 2 * KEYS * KEY_SIZE + head * VALUE_SIZE + wide
        at_tape = (vector * VALUES + head)[:, None] * VALUE_SIZE + wide[None, :]
        v = _convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_value, real_wide, W)
        at_state = state + row * state_slot + head * KEY_SIZE * VALUE_SIZE + dim[:, None] * VALUE_SIZE + wide[None, :]
        s = tl.load(at_state, mask=real_dim[:, None] & real_wide[None, :], other=0.0)
        right = beta[:, None] * (v - faded * tl.dot(k, s, input_precision=EXACT))
        u = _solve(whole, blocks, twice, right, NODES, EXACT)
        o = faded * tl.dot(q, s, input_precision=EXACT) + tl.dot(seen, u, input_precision=EXACT)
        squares += tl.sum(o * o, 1)
        if number == 0:
            first = o
        else:
            second = o
        tl.store(tape_update + at_tape, u, mask=real_value)
        raw_value = tl.load(mine + (node * projected_row)[:, None] + at_value[None, :], mask=real_value, other=0.0)
        tl.store(tape_inputs + (vector * CHANNELS)[:, None] + at_value[None, :], raw_value, mask=real_value)

    scale = tl.rsqrt(squares / VALUE_SIZE + eps)[:, None]
    for number in tl.static_range(PARTS):
        wide = number * PART + part
        real_wide = wide < VALUE_SIZE
        real_value = real_node[:, None] & real_wide[None, :]
        at_gate = (node * projected_row + CHANNELS + head * VALUE_SIZE)[:, None] + wide[None, :]
        z = tl.load(mine + at_gate, mask=real_value, other=0.0).to(tl.float32)
        weight = tl.load(head_norm + wide, mask=real_wide, other=0.0)
        if number == 0:
            o = first
        else:
            o = second
        gated = o * scale * weight[None, :] * z * tl.sigmoid(z)
        at_out = (vector * VALUES + head)[:, None] * VALUE_SIZE + wide[None, :]
        tl.store(out + at_out, gated.to(out.dtype.element_ty), mask=real_value)


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
):
    """Walk a path: decay, then add what the node wrote. One program a layer, row, head and part of the values."""
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
):
    """Keep the last inputs of [stored | path]; all are read before any is written."""
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
