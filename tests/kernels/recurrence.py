"""The gated delta rule token by token, along one path: what every faster form must equal."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Inputs(NamedTuple):
    """One pass: query and key [B, T, K, D], value [B, T, V, E], log decay and beta [B, T, V]."""

    query: Tensor
    key: Tensor
    value: Tensor
    log_decay: Tensor
    beta: Tensor

    def at(self, index: object) -> "Inputs":
        """Some of the tokens."""
        return Inputs(*(tensor[:, index] for tensor in self))

    def to(self, dtype: torch.dtype) -> "Inputs":
        """The same numbers in another type."""
        return Inputs(*(tensor.to(dtype) for tensor in self))


def random_inputs(
    tokens: int,
    *,
    batch: int = 2,
    heads: int = 2,
    group: int = 3,
    sizes: tuple[int, int] = (8, 12),
    strongest: float = 3.0,
    alike: float = 0.0,
    seed: int = 0,
) -> Inputs:
    """Draw a pass in float64; ``strongest`` decay in nats, ``alike`` pulls the keys towards a common one."""
    gen = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=gen, dtype=torch.float64)

    d, e = sizes
    key = functional.normalize(draw(batch, tokens, heads, d) + alike * draw(batch, 1, heads, d), dim=-1)
    query = functional.normalize(draw(batch, tokens, heads, d), dim=-1) * d**-0.5
    uniform = torch.rand(batch, tokens, heads * group, generator=gen, dtype=torch.float64)
    return Inputs(
        query,
        key,
        draw(batch, tokens, heads * group, e),
        -strongest * uniform**4,
        torch.sigmoid(2 * draw(batch, tokens, heads * group)),
    )


def random_state(inputs: Inputs, seed: int = 1) -> Tensor:
    """A state [B, V, D, E] to start from."""
    gen = torch.Generator().manual_seed(seed)
    batch, _, heads, e = inputs.value.shape
    return torch.randn(batch, heads, inputs.key.shape[-1], e, generator=gen, dtype=torch.float64)


def recur(inputs: Inputs, state: Tensor) -> tuple[Tensor, Tensor]:
    """Walk all tokens as one path from ``state``: outputs [B, T, V, E] and the last state, in the inputs' type."""
    group = inputs.value.shape[2] // inputs.key.shape[2]
    query, key = (tensor.repeat_interleave(group, 2) for tensor in (inputs.query, inputs.key))
    outputs = []
    for t in range(key.shape[1]):
        state = state * inputs.log_decay[:, t, :, None, None].exp()
        known = torch.einsum("bvde,bvd->bve", state, key[:, t])
        update = inputs.beta[:, t, :, None] * (inputs.value[:, t] - known)
        state = state + key[:, t, :, :, None] * update[:, :, None]
        outputs.append(torch.einsum("bvde,bvd->bve", state, query[:, t]))
    return torch.stack(outputs, 1), state
