"""The draft network as it is trained: packed blocks in, hidden states out, every tensor under its z-lab name.

The mathematics is that of ``models.dflash.network``, which runs what this trains; the tests hold the two together.
Weights are float32 and are used in the dtype of the features. Embedding table and head are the target's, frozen.
Shape letters: B rows, T tokens of a row, A anchors, N slots of a block, K slots that predict, Q = A * N, S = T + Q,
F = taps * target width, H hidden, G heads, D head size, P blocks that there are, V words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from outrider.errors import UnsupportedError
from outrider.models.dflash.config import DFlashConfig
from outrider.models.layers import rms_norm, rotate
from outrider.models.rope import Angles
from outrider.train.flex import flex

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


@dataclass(frozen=True, slots=True)
class Shown:
    """What the network is shown.

    Attributes:
        features_BTF: the target's, of the context.
        ids_BAN: tokens of the slots.
        positions_BS: of context and slots.
        visible: a layer, which keys its slots see.
        blocks_P: which of all blocks are wanted.
    """

    features_BTF: Tensor
    ids_BAN: Tensor
    positions_BS: Tensor
    visible: "tuple[Tensor | BlockMask, ...]"
    blocks_P: Tensor


@dataclass(frozen=True, slots=True)
class Tables:
    """Frozen tensors that are no weights of the drafter.

    Attributes:
        embedding_VH: the target's embedding table.
        head_VH: the target's head.
        mask_embedding_H: stands in the masked slots of drafters that bring it.
    """

    embedding_VH: Tensor
    head_VH: Tensor
    mask_embedding_H: Tensor | None = None

    def to(self, device: torch.device, dtype: torch.dtype) -> "Tables":
        """Return them where and as they are used."""
        mask_H = self.mask_embedding_H
        return Tables(
            self.embedding_VH.to(device, dtype),
            self.head_VH.to(device, dtype),
            None if mask_H is None else mask_H.to(device, dtype),
        )


class Norm(nn.Module):
    """RMS norm whose weight is used in the dtype of what it norms."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight, self._eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, values: Tensor) -> Tensor:
        """Norm the last axis."""
        return rms_norm(values, self.weight.to(values.dtype), self._eps)


class Project(nn.Linear):
    """A linear layer whose weights are used in the dtype of what it reads."""

    def forward(self, values: Tensor) -> Tensor:  # noqa: D102 -- as its base
        bias = None if self.bias is None else self.bias.to(values.dtype)
        return functional.linear(values, self.weight.to(values.dtype), bias)


class Frozen(nn.Module):
    """A table that is saved with the weights and not trained."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight: Tensor
        self.register_buffer("weight", torch.zeros(rows, width))


class Attention(nn.Module):
    """Slots over context and block, with the same projections for the keys of both."""

    def __init__(self, config: DFlashConfig) -> None:
        super().__init__()
        hidden, size = config.hidden_size, config.head_dim
        self._size, self._scale = size, config.value_scale
        self.q_proj = Project(hidden, config.num_heads * size, bias=config.biases)
        self.k_proj = Project(hidden, config.num_kv_heads * size, bias=config.biases)
        self.v_proj = Project(hidden, config.num_kv_heads * size, bias=config.biases)
        self.o_proj = Project(config.num_heads * size, hidden, bias=config.biases)
        self.q_norm, self.k_norm = Norm(size, config.norm_eps), Norm(size, config.norm_eps)
        self.sinks = nn.Parameter(torch.zeros(config.num_heads)) if config.sinks else None

    def forward(
        self, slots_BQH: Tensor, context_BTH: Tensor, turned: tuple[Tensor, Tensor], visible: "Tensor | BlockMask"
    ) -> Tensor:
        """Mix what each slot sees."""
        keys_from_BSH = torch.cat((context_BTH, slots_BQH), 1)
        cos, sin = turned
        context = context_BTH.shape[1]
        query_BQGD = rotate(self.q_norm(self._heads(self.q_proj(slots_BQH))), cos[:, context:], sin[:, context:])
        key_BSGD = rotate(self.k_norm(self._heads(self.k_proj(keys_from_BSH))), cos, sin)
        value_BSGD = self._heads(self.v_proj(keys_from_BSH))
        if self._scale != 1:
            value_BSGD = value_BSGD * self._scale
        query_BGQD, key_BGSD, value_BGSD = (heads.transpose(1, 2) for heads in (query_BQGD, key_BSGD, value_BSGD))
        if isinstance(visible, Tensor):
            mixed_BGQD = self._dense(query_BGQD, key_BGSD, value_BGSD, visible)
        else:
            mixed_BGQD = flex(query_BGQD, key_BGSD, value_BGSD, visible)
        mixed: Tensor = self.o_proj(mixed_BGQD.transpose(1, 2).flatten(2))
        return mixed

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.view(*projected.shape[:-1], -1, self._size)

    def _dense(self, query_BGQD: Tensor, key_BGSD: Tensor, value_BGSD: Tensor, visible_B1QS: Tensor) -> Tensor:
        shared = query_BGQD.shape[1] // key_BGSD.shape[1]
        key_BGSD, value_BGSD = (heads.repeat_interleave(shared, 1) for heads in (key_BGSD, value_BGSD))
        if self.sinks is None:
            return functional.scaled_dot_product_attention(query_BGQD, key_BGSD, value_BGSD, attn_mask=visible_B1QS)
        # A sink is one more key, whose logit is learnt and whose value is nothing.
        nothing = key_BGSD.new_zeros(*key_BGSD.shape[:2], 1, self._size)
        seen = torch.zeros_like(visible_B1QS, dtype=query_BGQD.dtype).masked_fill(~visible_B1QS, float("-inf"))
        sink = self.sinks.to(query_BGQD.dtype)[:, None, None].expand(*query_BGQD.shape[:3], 1)
        bias = torch.cat((seen.expand(-1, sink.shape[1], -1, -1), sink), -1)
        keys, values = torch.cat((key_BGSD, nothing), 2), torch.cat((value_BGSD, nothing), 2)
        return functional.scaled_dot_product_attention(query_BGQD, keys, values, attn_mask=bias)


class Mlp(nn.Module):
    """Gate, up, down."""

    def __init__(self, config: DFlashConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj, self.up_proj = Project(hidden, inner, bias=False), Project(hidden, inner, bias=False)
        self.down_proj = Project(inner, hidden, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        """Map [..., H] to [..., H]."""
        mapped: Tensor = self.down_proj(functional.silu(self.gate_proj(values)) * self.up_proj(values))
        return mapped


class Layer(nn.Module):
    """Attention and MLP, each added to its input."""

    def __init__(self, config: DFlashConfig) -> None:
        super().__init__()
        self.input_layernorm = Norm(config.hidden_size, config.norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = Norm(config.hidden_size, config.norm_eps)
        self.mlp = Mlp(config)

    def forward(
        self, hidden_BQH: Tensor, context_BTH: Tensor, turned: tuple[Tensor, Tensor], visible: "Tensor | BlockMask"
    ) -> Tensor:
        """Run one layer over all slots."""
        normed_BQH = self.input_layernorm(hidden_BQH)
        hidden_BQH = hidden_BQH + self.self_attn(normed_BQH, context_BTH, turned, visible)
        mapped: Tensor = hidden_BQH + self.mlp(self.post_attention_layernorm(hidden_BQH))
        return mapped


class DraftNetwork(nn.Module):
    """A DFlash drafter in training.

    Args:
        config: what it is.
        tables: the target's embedding table and head, in the dtype to compute in.

    Raises:
        UnsupportedError: a drafter with parts that are not trained here.
    """

    def __init__(self, config: DFlashConfig, tables: Tables) -> None:
        super().__init__()
        if config.kind != "dflash":
            raise UnsupportedError(
                f"A drafter of kind {config.kind!r} cannot be trained: expected dflash; run it as it is, or train one "
                "of that kind from scratch."
            )
        self.config, self._tables = config, tables
        self.fc = Project(len(config.taps) * config.target_hidden_size, config.hidden_size, bias=False)
        self.hidden_norm, self.norm = (Norm(config.hidden_size, config.norm_eps) for _ in range(2))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.embed_tokens = Frozen(config.vocab_size, config.hidden_size) if config.own_embedding else None
        self.lm_head = Frozen(self.words, config.hidden_size) if config.own_head else None
        if config.draft_vocab_size is not None:
            self.register_buffer("d2t", torch.zeros(config.draft_vocab_size, dtype=torch.int64))
        self._angles = Angles(config.rope, config.head_dim, tables.head_VH.device)

    @property
    def words(self) -> int:
        """Words of its head."""
        return self.config.draft_vocab_size or self.config.vocab_size

    def forward(self, shown: Shown) -> Tensor:
        """Return the hidden states [P, K, H], after the final norm, of the slots that predict."""
        config = self.config
        context_BTH = self.hidden_norm(self.fc(shown.features_BTF))
        turned = self._angles(shown.positions_BS, context_BTH.dtype)
        hidden_BQH = self._embed(shown.ids_BAN).flatten(1, 2).to(context_BTH.dtype)
        # Nobody wants this gradient; but so the first layer is like the others, and one compiled layer serves all.
        hidden_BQH.requires_grad_(torch.is_grad_enabled())
        for layer, visible in zip(self.layers, shown.visible, strict=True):
            hidden_BQH = layer(hidden_BQH, context_BTH, turned, visible)
        slots_PNH = hidden_BQH.view(-1, config.block_size, config.hidden_size).index_select(0, shown.blocks_P)
        normed: Tensor = self.norm(slots_PNH[:, config.block_size - config.max_tokens :])
        return normed

    def _embed(self, ids_BAN: Tensor) -> Tensor:
        table = self._tables.embedding_VH if self.embed_tokens is None else self.embed_tokens.weight
        hidden_BANH = functional.embedding(ids_BAN, table) * self.config.embedding_scale
        if self._tables.mask_embedding_H is not None:
            hidden_BANH[:, :, 1:] = self._tables.mask_embedding_H * self.config.embedding_scale
        return hidden_BANH

    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the head: [..., H] to [..., V], float32 at least."""
        head_VH = self._tables.head_VH if self.lm_head is None else self.lm_head.weight
        logits = functional.linear(hidden, head_VH.to(hidden.dtype))
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if self.config.output_multiplier != 1:
            logits = logits * self.config.output_multiplier
        if self.config.soft_cap is None:
            return logits
        return torch.tanh(logits / self.config.soft_cap) * self.config.soft_cap

    def weights(self) -> dict[str, Tensor]:
        """Return every tensor of the drafter under its z-lab name, as it stands."""
        return {name: tensor.detach() for name, tensor in self.state_dict().items()}

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy every tensor from ``tensors``."""
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                tensor.copy_(tensors[name])

    def compile_layers(self) -> None:
        """Compile what all layers share, once; for GPUs."""
        for layer in self.layers:
            layer.compile(dynamic=False)
