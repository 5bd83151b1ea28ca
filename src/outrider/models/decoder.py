"""One decoder for the families llama, qwen2 and qwen3: runs a draft tree over committed keys and values.

It commits nothing and knows no sampling. A node sees the committed tokens and its own ancestors; its RoPE
position is committed length + depth.
Shape letters: B batch rows, N nodes, R = B*N rows, H hidden, A query heads, G key/value heads, D head size, S span.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from outrider.engine.cache import Cache
from outrider.engine.interfaces import TargetOutput, TargetShape
from outrider.engine.tree import DraftTree
from outrider.models.config import DecoderConfig
from outrider.models.linear import DenseLinear, Linear, pack
from outrider.models.masks import Masks
from outrider.models.memory import give_back_freed_memory
from outrider.models.rope import Angles, rotate

ReadTensor = Callable[[str], Tensor]
LookUp = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Block:
    """Weights of one layer; queries, keys and values as one linear, gate and up as another."""

    attention_norm: Tensor
    qkv: Linear
    query_norm: Tensor | None
    key_norm: Tensor | None
    output: Linear
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear
    window: int | None


@dataclass(frozen=True, slots=True)
class Pass:
    """What all layers of one forward pass share."""

    cache: Cache
    rows: slice
    columns: Tensor | slice
    span: int
    cos: Tensor
    sin: Tensor
    masks: Masks


def _columns(tree: DraftTree, lengths_B: Tensor, span: int) -> Tensor | slice:
    """Where the nodes' rows go: behind the committed ones; of a single sequence, the last of the span."""
    if len(lengths_B) == 1:
        return slice(span - tree.width, span)
    return lengths_B[:, None] + torch.arange(tree.width, device=lengths_B.device)


class Decoder:
    """A target: attention layers, gated MLPs, RMS norms.

    Args:
        config: sizes and variants.
        read: gives a tensor by its Hugging Face name.
        dtype: of weights and, but for float16 on a CPU (fp32 there), of activations.
        device: where it runs.
        embed: looks rows of the embedding table up; None holds the table in memory.
    """

    def __init__(
        self,
        config: DecoderConfig,
        read: ReadTensor,
        *,
        dtype: torch.dtype,
        device: torch.device,
        embed: LookUp | None = None,
    ) -> None:
        self.config = config
        self.device = device
        self._dtype = dtype
        self.activations = torch.float32 if device.type == "cpu" and dtype == torch.float16 else dtype
        self._head = pack(read("model.embed_tokens.weight" if config.tied else "lm_head.weight"), None, dtype, device)
        self._embed = embed or self._table(read)
        give_back_freed_memory()
        self._norm = self._vector(read("model.norm.weight"))
        self._blocks = []
        for layer in range(config.num_layers):
            self._blocks.append(self._load_block(read, layer))
            give_back_freed_memory()
        self._angles = Angles(config.rope, config.head_dim, device)

    @property
    def shape(self) -> TargetShape:
        """Sizes the engine needs."""
        c = self.config
        return TargetShape(c.vocab_size, c.hidden_size, c.num_layers, c.max_positions)

    def new_cache(self, *, slots: int, max_len: int) -> Cache:
        """Room for ``slots`` sequences of ``max_len`` rows."""
        return Cache(
            layers=self.config.num_layers,
            slots=slots,
            rows=max_len,
            heads=self.config.num_kv_heads,
            head_dim=self.config.head_dim,
            dtype=self.activations,
            device=self.device,
        )

    @torch.inference_mode()
    def forward(
        self,
        tree: DraftTree,
        cache: Cache,
        rows: slice,
        lengths_B: Tensor,
        *,
        span: int,
        taps: tuple[int, ...] = (),
    ) -> TargetOutput:
        """Run every node of the tree (see ``engine.interfaces.Target``)."""
        cos, sin = self._angles(lengths_B[:, None] + tree.depths_BN, self.activations)
        columns = _columns(tree, lengths_B, span)
        masks = Masks(tree, lengths_B, span, self.activations)
        shared = Pass(cache, rows, columns, span, cos, sin, masks)
        hidden_BNH = self._embed(tree.tokens_BN).to(self.activations)
        tapped: dict[int, Tensor] = {}
        for layer, block in enumerate(self._blocks):
            hidden_BNH = hidden_BNH + self._attend(block, layer, self._normed(hidden_BNH, block.attention_norm), shared)
            hidden_BNH = hidden_BNH + self._mlp(block, self._normed(hidden_BNH, block.mlp_norm))
            if layer in taps:
                tapped[layer] = hidden_BNH
        return TargetOutput(self._normed(hidden_BNH, self._norm), tapped)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the head: [..., H] to [..., V], float32."""
        flat = self._head(hidden.reshape(-1, self.config.hidden_size))
        return flat.float().view(*hidden.shape[:-1], -1)

    def _table(self, read: ReadTensor) -> LookUp:
        """Look rows up in memory: in the head's own weights where they are the table and lie there unpacked."""
        if self.config.tied and isinstance(self._head, DenseLinear):
            table = self._head.weight
        else:
            table = read("model.embed_tokens.weight").to(device=self.device, dtype=self._dtype)
        return lambda tokens: functional.embedding(tokens, table)

    def _normed(self, values: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(values, weight.shape, weight, self.config.norm_eps)

    def _attend(self, block: Block, layer: int, normed_BNH: Tensor, shared: Pass) -> Tensor:
        config = self.config
        batch, nodes, hidden = normed_BNH.shape
        heads, kv_heads = config.num_heads, config.num_kv_heads
        qkv = block.qkv(normed_BNH.reshape(-1, hidden)).view(batch, nodes, -1, config.head_dim)
        queries_keys, value_BNGD = qkv.split_with_sizes((heads + kv_heads, kv_heads), 2)
        if block.query_norm is not None and block.key_norm is not None:
            query, key = queries_keys.split_with_sizes((heads, kv_heads), 2)
            queries_keys = torch.cat((self._normed(query, block.query_norm), self._normed(key, block.key_norm)), 2)
        query_BNAD, key_BNGD = rotate(queries_keys, shared.cos, shared.sin).split_with_sizes((heads, kv_heads), 2)
        shared.cache.write(
            layer,
            shared.rows,
            shared.columns,
            key_BNGD.transpose(1, 2),
            value_BNGD.transpose(1, 2),
        )
        key_BGSD, value_BGSD = shared.cache.read(layer, shared.rows, shared.span)
        mixed_BAND = functional.scaled_dot_product_attention(
            query_BNAD.transpose(1, 2),
            key_BGSD,
            value_BGSD,
            attn_mask=shared.masks.of(block.window),
            enable_gqa=heads != kv_heads,
        )
        mixed_RH = mixed_BAND.transpose(1, 2).reshape(batch * nodes, heads * config.head_dim)
        return block.output(mixed_RH).view(batch, nodes, hidden)

    def _mlp(self, block: Block, normed_BNH: Tensor) -> Tensor:
        gate, up = block.gate_up(normed_BNH.reshape(-1, normed_BNH.shape[-1])).chunk(2, -1)
        return block.down(functional.silu(gate) * up).view(normed_BNH.shape)

    def _vector(self, tensor: Tensor) -> Tensor:
        return tensor.to(device=self.device, dtype=self.activations)

    def _load_block(self, read: ReadTensor, layer: int) -> Block:
        prefix = f"model.layers.{layer}."
        config = self.config

        def linear(*names: str, bias: bool) -> Linear:
            weight = torch.cat([read(f"{prefix}{name}.weight") for name in names])
            offset = torch.cat([read(f"{prefix}{name}.bias") for name in names]) if bias else None
            return pack(weight, offset, self._dtype, self.device)

        def vector(name: str) -> Tensor:
            return self._vector(read(f"{prefix}{name}.weight"))

        return Block(
            attention_norm=vector("input_layernorm"),
            qkv=linear("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", bias=config.qkv_bias),
            query_norm=vector("self_attn.q_norm") if config.qk_norm else None,
            key_norm=vector("self_attn.k_norm") if config.qk_norm else None,
            output=linear("self_attn.o_proj", bias=config.output_bias),
            mlp_norm=vector("post_attention_layernorm"),
            gate_up=linear("mlp.gate_proj", "mlp.up_proj", bias=config.mlp_bias),
            down=linear("mlp.down_proj", bias=config.mlp_bias),
            window=config.windows[layer],
        )
