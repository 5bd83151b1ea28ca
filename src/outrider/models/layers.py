"""The layers that targets and drafters share: attention over a cache, gated MLP, and how their weights are read.

Shape letters: B batch rows, N nodes, H hidden, A query heads, G key/value heads, D head size, S columns read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from outrider.engine.cache import Cache
from outrider.models.linear import Linear, pack
from outrider.models.masks import Visible

ReadTensor = Callable[[str], Tensor]
# Attention in place of ``mix``: query, keys, values, who sees whom, sinks.
Mix = Callable[[Tensor, Tensor, Tensor, Visible, Tensor | None], Tensor]


class Sizes(NamedTuple):
    """Numbers of query and key/value heads, the size of a head, and what norms add to the mean square."""

    queries: int
    keys: int
    head: int
    eps: float


@dataclass(frozen=True, slots=True)
class Block:
    """Weights of one layer; queries, keys and values as one linear, gate and up as another.

    Attributes:
        layer: its number, under which the cache keeps its keys.
        qkv: queries, keys, values, and behind them the gates of gated heads.
        sinks: [A] logit of a key that every query sees and whose value is zero, or None.
    """

    layer: int
    attention_norm: Tensor
    qkv: Linear
    query_norm: Tensor | None
    key_norm: Tensor | None
    output: Linear
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear
    sinks: Tensor | None = None


class HasMlp(Protocol):
    """Weights of a layer that ends in a gated MLP."""

    @property
    def gate_up(self) -> Linear:
        """Gate and up, stacked."""
        ...

    @property
    def down(self) -> Linear:
        """Back to the hidden size."""
        ...


@dataclass(frozen=True, slots=True)
class Pass:
    """What all layers of one forward pass share: where keys go, how far they are read, the nodes' angles, a kernel."""

    cache: Cache
    rows: slice
    columns: Tensor | slice
    span: int
    cos: Tensor
    sin: Tensor
    mix: Mix | None = None


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Reads the weights of layers.

    Args:
        read: gives a tensor by its Hugging Face name.
        dtype: of linear weights.
        activations: of vectors and of what flows.
        device: where they go.
        centred: whether norms scale by 1 + their weights.
    """

    read: ReadTensor
    dtype: torch.dtype
    activations: torch.dtype
    device: torch.device
    centred: bool = False

    def linear(self, *names: str, bias: bool = False) -> Linear:
        """Stack the outputs of linear layers that read the same input."""
        weight = torch.cat([self.read(f"{name}.weight") for name in names])
        offset = torch.cat([self.read(f"{name}.bias") for name in names]) if bias else None
        return pack(weight, offset, self.dtype, self.device)

    def vector(self, name: str) -> Tensor:
        """Read a norm's weights or another vector."""
        return self.read(name).to(device=self.device, dtype=self.activations)

    def exact(self, name: str) -> Tensor:
        """Read what is computed with in float32 at least, whatever flows."""
        return self.read(name).to(device=self.device, dtype=torch.promote_types(self.activations, torch.float32))

    def norm(self, name: str) -> Tensor:
        """Read what a norm scales by; 1 + weights near 0 would lose their digits in half precision."""
        return 1 + self.exact(name) if self.centred else self.vector(name)

    def block(
        self,
        prefix: str,
        layer: int,
        *,
        qk_norm: bool,
        qkv_bias: bool,
        output_bias: bool,
        mlp_bias: bool,
        sinks: bool = False,
        gated_heads: int = 0,
    ) -> Block:
        """Read the layer whose tensors start with ``prefix`` and its number; ``gated_heads`` are all heads, or 0."""
        prefix = f"{prefix}{layer}."
        attention = f"{prefix}self_attn."
        qkv = tuple(f"{attention}{part}_proj" for part in "qkv")
        return Block(
            layer=layer,
            attention_norm=self.norm(f"{prefix}input_layernorm.weight"),
            qkv=self._gated(gated_heads, *qkv) if gated_heads else self.linear(*qkv, bias=qkv_bias),
            query_norm=self.norm(f"{attention}q_norm.weight") if qk_norm else None,
            key_norm=self.norm(f"{attention}k_norm.weight") if qk_norm else None,
            output=self.linear(f"{attention}o_proj", bias=output_bias),
            mlp_norm=self.norm(f"{prefix}post_attention_layernorm.weight"),
            gate_up=self.linear(f"{prefix}mlp.gate_proj", f"{prefix}mlp.up_proj", bias=mlp_bias),
            down=self.linear(f"{prefix}mlp.down_proj", bias=mlp_bias),
            sinks=self.vector(f"{attention}sinks") if sinks else None,
        )

    def _gated(self, heads: int, query: str, key: str, value: str) -> Linear:
        """Stack queries, keys, values and gates; each head's gate is stored behind its query."""
        both = self.read(f"{query}.weight")
        queries, gates = both.view(heads, 2, -1, both.shape[-1]).unbind(1)
        parts = (queries.flatten(0, 1), self.read(f"{key}.weight"), self.read(f"{value}.weight"), gates.flatten(0, 1))
        return pack(torch.cat(parts), None, self.dtype, self.device)


def rms_norm(values: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Apply an RMS norm over the last axis, in the precision of its weights."""
    if weight.dtype != values.dtype:
        return functional.rms_norm(values.to(weight.dtype), weight.shape, weight, eps).to(values.dtype)
    return functional.rms_norm(values, weight.shape, weight, eps)


def rotate(heads_BNAD: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Rotate halves of each head, or of its leading part: (x, y) to (x cos - y sin, y cos + x sin)."""
    size = cos.shape[-1]
    if size < heads_BNAD.shape[-1]:
        return torch.cat((rotate(heads_BNAD[..., :size], cos, signed_sin), heads_BNAD[..., size:]), -1)
    swapped = heads_BNAD.roll(heads_BNAD.shape[-1] // 2, -1)
    return torch.addcmul(heads_BNAD * cos, swapped, signed_sin)


def node_columns(width: int, lengths_B: Tensor, span: int | None) -> Tensor | slice:
    """Where a pass leaves its rows: behind the committed ones; of a single sequence, the last of a known span."""
    if len(lengths_B) == 1 and span is not None:
        return slice(span - width, span)
    return lengths_B[:, None] + torch.arange(width, device=lengths_B.device)


def add_norm(hidden: Tensor, update: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return hidden + update, and the norm of it; None adds nothing. The sum goes into the update."""
    # Not into the old state, which may be a tap.
    total = hidden if update is None else update.add_(hidden)
    return total, rms_norm(total, weight, eps)


def attend(normed: Tensor, block: Block, sizes: Sizes, shared: Pass, visible: Visible) -> Tensor:
    """Leave the nodes' keys and values in the cache and mix what each node sees.

    Takes and returns [..., H]; the vectors are shared out evenly among the rows of the pass, B rows of N nodes.
    """
    batch = shared.rows.stop - shared.rows.start
    vectors = normed.reshape(-1, normed.shape[-1])
    qkv = block.qkv(vectors).view(batch, len(vectors) // batch, -1, sizes.head)
    ungated = sizes.queries + 2 * sizes.keys
    queries_keys, value_BNGD, gate_BNAD = qkv.split_with_sizes(
        (sizes.queries + sizes.keys, sizes.keys, qkv.shape[2] - ungated), 2
    )
    if block.query_norm is not None and block.key_norm is not None:
        query, key = queries_keys.split_with_sizes((sizes.queries, sizes.keys), 2)
        query, key = rms_norm(query, block.query_norm, sizes.eps), rms_norm(key, block.key_norm, sizes.eps)
        queries_keys = torch.cat((query, key), 2)
    rotated = rotate(queries_keys, shared.cos, shared.sin)
    query_BNAD, key_BNGD = rotated.split_with_sizes((sizes.queries, sizes.keys), 2)
    layer, rows = block.layer, shared.rows
    shared.cache.write(layer, rows, shared.columns, key_BNGD.transpose(1, 2), value_BNGD.transpose(1, 2))
    key_BGSD, value_BGSD = shared.cache.read(layer, rows, slice(visible.first, shared.span))
    query_BAND = query_BNAD.transpose(1, 2)
    if shared.mix is None:
        mixed_BAND = mix(query_BAND, key_BGSD, value_BGSD, visible.mask, block.sinks)
    else:
        mixed_BAND = shared.mix(query_BAND, key_BGSD, value_BGSD, visible, block.sinks)
    mixed_BNAD = mixed_BAND.transpose(1, 2)
    if gate_BNAD.shape[2]:
        mixed_BNAD = mixed_BNAD * gate_BNAD.sigmoid()
    return block.output(mixed_BNAD.reshape(len(vectors), -1)).view(normed.shape)


def keep(vectors_BNX: Tensor, block: Block, sizes: Sizes, shared: Pass) -> None:
    """Leave keys and values in the cache, which stand side by side in the vectors, all key heads first."""
    heads_BNGD = vectors_BNX.view(*vectors_BNX.shape[:2], 2 * sizes.keys, sizes.head)
    key_BNGD, value_BNGD = heads_BNGD.split_with_sizes((sizes.keys, sizes.keys), 2)
    if block.key_norm is not None:
        key_BNGD = rms_norm(key_BNGD, block.key_norm, sizes.eps)
    key_BGND = rotate(key_BNGD, shared.cos, shared.sin).transpose(1, 2)
    shared.cache.write(block.layer, shared.rows, shared.columns, key_BGND, value_BNGD.transpose(1, 2))


def mix(query_BAND: Tensor, key_BGSD: Tensor, value_BGSD: Tensor, mask: Tensor, sinks_A: Tensor | None) -> Tensor:
    """Scaled dot-product attention, [B, A, N, D]; a sink is one more key whose logit is learnt and value zero."""
    if sinks_A is not None:
        batch, keys, _, size = key_BGSD.shape
        nothing = key_BGSD.new_zeros(batch, keys, 1, size)
        key_BGSD, value_BGSD = torch.cat((key_BGSD, nothing), 2), torch.cat((value_BGSD, nothing), 2)
        heads, nodes = query_BAND.shape[1:3]
        sink_BAN1 = sinks_A.view(1, -1, 1, 1).expand(batch, heads, nodes, 1)
        mask = torch.cat((mask.expand(-1, heads, -1, -1), sink_BAN1), -1)
    return functional.scaled_dot_product_attention(
        query_BAND, key_BGSD, value_BGSD, attn_mask=mask, enable_gqa=query_BAND.shape[1] != key_BGSD.shape[1]
    )


def mlp(normed: Tensor, block: HasMlp) -> Tensor:
    """Gate, up, down: [..., H] to [..., H]."""
    gate, up = block.gate_up(normed.reshape(-1, normed.shape[-1])).chunk(2, -1)
    return block.down(functional.silu(gate).mul_(up)).view(normed.shape)
