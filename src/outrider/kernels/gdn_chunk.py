"""The gated delta rule along a sequence, in chunks: what reads a prompt, and what training differentiates.

A head keeps a matrix S, keys by values, which forgets, takes back what it would have answered, and learns anew:

    S <- exp(g) S;   u = beta (v - S^T k);   S <- S + k u^T;   o = S^T q

Token by token that is slow. Within a chunk all u solve one unit-lower-triangular system, and S is touched once a
chunk. Sources: Gated Delta Networks (Yang et al. 2024); the chunked form of DeltaNet (Yang et al. 2024).
No operation is in place, so that gradients flow.

Shape letters: B batch rows, T tokens, K key heads, V value heads (a multiple R of K), D key size, E value size;
C chunks, L tokens of a chunk.
"""

import torch
from torch import Tensor
from torch.nn import functional

CHUNK = 64  # longer chunks cost more in the products within, which grow by the square; shorter ones in steps


def chunk(  # noqa: PLR0917 -- the letters of the rule
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    state: Tensor | None = None,
    starts: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Run the rule along each row.

    Computes in float32, in float64 for float64 values.

    Args:
        query: [B, T, K, D], of length 1 and scaled.
        key: [B, T, K, D], of length 1; key head j serves value heads jR to jR + R - 1.
        value: [B, T, V, E].
        log_decay: [B, T, V] g, the logarithm of what is kept of the state, at most 0.
        beta: [B, T, V] how much of the error is corrected, 0 to 1.
        state: [B, V, D, E] S before the first token; None for zeros.
        starts: bool, [B, T], tokens before which all is forgotten: the first ones of the documents of a packed row.

    Returns:
        Outputs o, [B, T, V, E], and S after the last token.
    """
    batch, tokens, heads, _ = key.shape
    group = value.shape[2] // heads
    q, k, v, g, b = _split(value.dtype, heads, query, key, value, log_decay[..., None], beta[..., None])
    sees, carried = _documents(starts, k)
    path_decay = sees.to(g.dtype) @ g
    between = decay_between(path_decay, sees)
    since_start = path_decay.exp() * carried
    right = torch.cat((b * v, b * since_start * k), -1)
    # The diagonal is taken as 1 and what lies above it as 0.
    solved = torch.linalg.solve_triangular(b * (k @ k.mT) * between, right, upper=False, unitriangular=True)
    inner = (q @ k.mT) * between
    kept = k * between[..., -1:, :].mT
    if state is None:
        state = v.new_zeros(batch, heads * group, k.shape[-1], v.shape[-1])
    s = state.to(v.dtype).view(batch, heads, group, *state.shape[2:])
    outputs = []
    for c in range(len(v)):
        u = solved[c, ..., : v.shape[-1]] - solved[c, ..., v.shape[-1] :] @ s
        outputs.append(since_start[c] * (q[c] @ s) + inner[c] @ u)
        s = since_start[c, ..., -1:, :] * s + kept[c].mT @ u
    out = torch.cat(outputs, -2).flatten(1, 2)[:, :, :tokens]
    return out.transpose(1, 2), s.flatten(1, 2)


def decay_between(path_decay: Tensor, sees: Tensor) -> Tensor:
    """What is left at token i of what token j wrote: exp(G_i - G_j) where i sees j, 0 elsewhere.

    Args:
        path_decay: [..., L, 1] G, sum of log decays up to each token, itself included.
        sees: bool, broadcast to [..., L, L]; i sees itself.
    """
    # Masked before the exponential: between tokens that do not see each other it may overflow.
    return (path_decay - path_decay.mT).masked_fill(~sees, float("-inf")).exp()


def _documents(starts: Tensor | None, key: Tensor) -> tuple[Tensor, Tensor]:
    """Who sees whom within a chunk, and which tokens see the state before it; both broadcast to [C, B, K, R, L, L]."""
    length = key.shape[-2]
    earlier = torch.ones(length, length, dtype=torch.bool, device=key.device).tril()
    if starts is None:
        return earlier, torch.ones(length, 1, dtype=torch.bool, device=key.device)
    (marks,) = _split(key.dtype, 1, starts[..., None, None])
    document = marks.cumsum(-2)
    return earlier & (document == document.mT), document == 0


def _split(dtype: torch.dtype, heads: int, *tensors: Tensor) -> list[Tensor]:
    """[B, T, heads, X] to [C, B, K, R, L, X] each; what pads the last chunk (all zeros) leaves the state as it is."""
    tokens = tensors[0].shape[1]
    length = min(CHUNK, tokens)
    padding = -tokens % length
    dtype = torch.promote_types(dtype, torch.float32)
    result = []
    for tensor in tensors:
        padded = functional.pad(tensor.to(dtype), (0, 0, 0, 0, 0, padding))
        batch, _, all_heads, size = padded.shape
        chunks = padded.reshape(batch, -1, length, heads, all_heads // heads, size)
        result.append(chunks.permute(1, 0, 3, 4, 2, 5))
    return result
