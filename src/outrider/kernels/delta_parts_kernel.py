"""What the Triton kernels of ``delta_tree`` are made of: convolution along paths, unit heads, gates, the tree's system.

Only ``delta_tree_kernel`` imports it, where Triton is.
"""
# Triton's language has no types, and its package is on GPU machines alone.
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def convolve(
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
def softplus(x):
    """log(1 + exp(x)), to the last digits also where exp(x) is far below 1."""
    small = tl.exp(tl.minimum(x, 20.0))
    more = 1.0 + small
    above = tl.where(more == 1.0, 1.0, more - 1.0)
    return tl.where(x > 20.0, x, tl.where(more == 1.0, small, tl.log(more) * small / above))


@triton.jit
def invert(below, NODES: tl.constexpr, EXACT: tl.constexpr):
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
def unit_heads(
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
    q = convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_query, real_dim, W)
    k = convolve(mine, projected_row, held, stored_row, factors, slot, node, real_node, at_key, real_dim, W)
    q *= (tl.rsqrt(tl.sum(q * q, 1) + 1e-6) * (KEY_SIZE**-0.5))[:, None]
    k *= tl.rsqrt(tl.sum(k * k, 1) + 1e-6)[:, None]
    return q, k


@triton.jit
def read_gates(gates, real_node, decay_rate, decay_bias, head, VALUES: tl.constexpr):
    """Beta and the logarithm of the decay of each node."""
    beta = tl.sigmoid(tl.load(gates, mask=real_node, other=0.0).to(tl.float32))
    raw = tl.load(gates + VALUES, mask=real_node, other=0.0).to(tl.float32) + tl.load(decay_bias + head)
    decay = tl.where(real_node, -tl.load(decay_rate + head) * softplus(raw), 0.0)
    return beta, decay


@triton.jit
def system(q, k, beta, decay, sight, node, real_node, NODES: tl.constexpr, EXACT: tl.constexpr):
    """What does not depend on values: decay along each path, the system's inverse, who reads how much of whom."""
    ancestor = tl.load(sight, mask=real_node[:, None] & real_node[None, :], other=0) != 0
    along = tl.sum(tl.where(ancestor, decay[None, :], 0.0), 1)
    between = tl.where(ancestor, tl.exp(tl.where(ancestor, along[:, None] - along[None, :], 0.0)), 0.0)
    below = beta[:, None] * tl.dot(k, tl.trans(k), input_precision=EXACT) * between
    whole = invert(tl.where(node[:, None] == node[None, :], 0.0, below), NODES, EXACT)
    return along, whole, tl.dot(q, tl.trans(k), input_precision=EXACT) * between
