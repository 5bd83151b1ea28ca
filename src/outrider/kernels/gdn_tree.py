"""The gated delta rule over a draft tree: all nodes at once, from one read of the committed state.

The state after a node is the committed one, decayed along its path, plus what its ancestors wrote. Inserting that
into the rule gives one unit-lower-triangular system for all nodes, and no node needs a state of its own:

    (I + A) U = beta (V - exp(G) K S);   O = exp(G) Q S + (D o Q K^T) U

with G the sum of log decays along a path, D_ij = exp(G_i - G_j) for ancestors j of i and 0 elsewhere, and
A = beta (D o K K^T) below the diagonal. It is the chunked form with ancestors in place of earlier tokens; the same
construction as TreeWY (arXiv 2608.20961). Solved by substitution: repeated squaring of A loses all digits on long
paths of similar keys. In float32, in float64 for float64 values.

Shape letters: B batch rows, N nodes, P path, K key heads, V value heads (a multiple R of K), D key size, E value size.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from outrider.kernels.gdn_chunk import decay_between


class Tape(NamedTuple):
    """What a pass keeps of each node: enough to make the state after any of them.

    Attributes:
        key: [B, N, K, D].
        update: [B, N, V, E] u, what the node writes at its key.
        log_decay: [B, N, V].
    """

    key: Tensor
    update: Tensor
    log_decay: Tensor


def tree(  # noqa: PLR0917 -- the letters of the rule
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, beta: Tensor, state: Tensor, sees: Tensor
) -> tuple[Tensor, Tape]:
    """Run the rule over every node; the state stays as it is.

    Args:
        query: [B, N, K, D], of length 1 and scaled.
        key: [B, N, K, D], of length 1; key head j serves value heads jR to jR + R - 1.
        value: [B, N, V, E].
        log_decay: [B, N, V], at most 0.
        beta: [B, N, V], 0 to 1.
        state: [B, V, D, E] committed.
        sees: bool, [B, N, N], whether node j is an ancestor of node i, or i itself; parents stand before children.

    Returns:
        Outputs [B, N, V, E], and what ``commit`` needs.
    """
    dtype = torch.promote_types(value.dtype, torch.float32)
    batch, nodes, heads, _ = key.shape
    q, k, v, g, b = (
        tensor.to(dtype).reshape(batch, nodes, heads, -1, size).permute(0, 2, 3, 1, 4)
        for tensor, size in zip(
            (query, key, value, log_decay, beta), (*key.shape[3:] * 2, value.shape[3], 1, 1), strict=True
        )
    )
    ancestors = sees[:, None, None]
    path_decay = ancestors.to(dtype) @ g
    between = decay_between(path_decay, ancestors)
    s = state.view(batch, heads, -1, *state.shape[2:]).to(dtype)
    right = b * (v - path_decay.exp() * (k @ s))
    # The diagonal is taken as 1 and what lies above it as 0.
    u = torch.linalg.solve_triangular(b * (k @ k.mT) * between, right, upper=False, unitriangular=True)
    out = path_decay.exp() * (q @ s) + ((q @ k.mT) * between) @ u
    as_given = (t.permute(0, 3, 1, 2, 4).reshape(value.shape) for t in (out, u))
    out, update = as_given
    return out, Tape(key.to(dtype), update, log_decay.to(dtype))


def commit(state: Tensor, tape: Tape, path: Tensor, counts: Tensor) -> Tensor:
    """Return the state [B, V, D, E] after the first ``counts`` nodes of each path: one update of that rank.

    Args:
        state: [B, V, D, E] that the pass read.
        tape: what it kept.
        path: [B, P] nodes from the root down.
        counts: [B] nodes that count; 0 leaves a row as it is.
    """
    batch, length = path.shape
    heads = tape.key.shape[2]
    key, update, log_decay = (_along(tensor, path) for tensor in tape)
    counted = torch.arange(length, device=path.device) < counts[:, None]
    log_decay = log_decay * counted[:, :, None]
    so_far = log_decay.cumsum(1)
    total = so_far[:, -1:]
    left = ((total - so_far).exp() * counted[:, :, None])[..., None]
    written = (left * update).view(batch, length, heads, -1, update.shape[-1])
    new = torch.einsum("bpkd,bpkre->bkrde", key, written)
    return state * total[:, 0, :, None, None].exp() + new.reshape(state.shape)


def _along(tensor: Tensor, path: Tensor) -> Tensor:
    """Rows of the path's nodes, [B, P, ...]."""
    return tensor[torch.arange(len(path), device=path.device)[:, None], path]
