"""The Triton kernels of ``delta_tree``: one program a row and value head; commits for all layers at once.

Only ``delta_tree`` imports them, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl

from outrider.kernels.early_kernel import begin


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
    """Return the inverse of 1 + below, ``below`` strictly lower triangular: diagonal blocks of 16, then merged.

    Blocks by substitution. With D the inverse of the diagonal blocks and M = D times the rest, the whole inverse is
    (1 - M)(1 + M^2) D: M has at most four levels of blocks, so its powers end there.
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
    if BLOCKS > 1:
        rest = tl.reshape(tl.where(same, 0.0, cut), (NODES, NODES))
        between = tl.dot(whole, rest, input_precision=EXACT)
        if BLOCKS > 2:
            twice = tl.dot(between, between, input_precision=EXACT)
            whole += tl.dot(twice, whole, input_precision=EXACT)
        whole -= tl.dot(between, whole, input_precision=EXACT)
    return whole


@triton.jit
def _unit_heads(
    mine,
    projected_row,
    held,
    stored_row,
    factors,
    slot,
    node,
    real_node,
    at_query,
    at_key,
    real_dim,
    KEY_SIZE: tl.constexpr,
    W: tl.constexpr,
):
    """Queries and keys after the convolution, of length 1; queries are scaled."""
    q = _convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_query, real_dim, W)
    k = _convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_key, real_dim, W)
    q *= (tl.rsqrt(tl.sum(q * q, 1) + 1e-6) * (KEY_SIZE**-0.5))[:, None]
    k *= tl.rsqrt(tl.sum(k * k, 1) + 1e-6)[:, None]
    return q, k


@triton.jit
def _gates(gates, real_node, decay_rate, decay_bias, head, VALUES: tl.constexpr):
    """Beta and the logarithm of the decay of each node."""
    beta = tl.sigmoid(tl.load(gates, mask=real_node, other=0.0).to(tl.float32))
    raw = tl.load(gates + VALUES, mask=real_node, other=0.0).to(tl.float32) + tl.load(decay_bias + head)
    decay = tl.where(real_node, -tl.load(decay_rate + head) * _softplus(raw), 0.0)
    return beta, decay


@triton.jit
def _system(q, k, beta, decay, sight, node, real_node, NODES: tl.constexpr, EXACT: tl.constexpr):
    """What does not depend on values: decay along each path, the system's inverse, who reads how much of whom."""
    ancestor = tl.load(sight, mask=real_node[:, None] & real_node[None, :], other=0) != 0
    along = tl.sum(tl.where(ancestor, decay[None, :], 0.0), 1)
    between = tl.where(ancestor, tl.exp(tl.where(ancestor, along[:, None] - along[None, :], 0.0)), 0.0)
    below = beta[:, None] * tl.dot(k, tl.trans(k), input_precision=EXACT) * between
    whole = _invert(tl.where(node[:, None] == node[None, :], 0.0, below), NODES, EXACT)
    return along, whole, tl.dot(q, tl.trans(k), input_precision=EXACT) * between


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
        v = _convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_value, real_wide, W)
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
    q, k = _unit_heads(
        mine, projected_row, held, stored_row, factors, slot, node, real_node, at_query, KEYS * KEY_SIZE + at_query,
        real_dim, KEY_SIZE, W,
    )  # fmt: skip
    gates = mine + node * projected_row + CHANNELS + VALUES * VALUE_SIZE + head
    beta, decay = _gates(gates, real_node, decay_rate, decay_bias, head, VALUES)
    sight = sees + (row * nodes + node)[:, None] * nodes + node[None, :]
    along, whole, seen = _system(q, k, beta, decay, sight, node, real_node, NODES, EXACT)
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
    q, k = _unit_heads(
        mine, projected_row, stored + row * stored_slot, stored_row, factors, slot, node, real_node, at_query,
        KEYS * KEY_SIZE + at_query, real_dim, KEY_SIZE, W,
    )  # fmt: skip
    gates = mine + node * projected_row + CHANNELS + VALUES * VALUE_SIZE + head
    beta, decay = _gates(gates, real_node, decay_rate, decay_bias, head, VALUES)
    sight = sees + (row * nodes + node)[:, None] * nodes + node[None, :]
    along, whole, seen = _system(q, k, beta, decay, sight, node, real_node, NODES, EXACT)
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
