"""What the decoder must know of a model, in one form for all families."""

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embedding: base, and how long contexts stretch it (keys as in Hugging Face configs)."""

    theta: float
    kind: Literal["default", "linear", "llama3", "yarn"] = "default"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Sizes and variants of one decoder.

    Attributes:
        windows: per layer, how many positions back a query sees (0 <= q - k < W), or None for all.
        qkv_bias, output_bias, mlp_bias: which linear layers carry a bias.
        qk_norm: whether queries and keys pass an RMS norm over the head before RoPE.
        tied: whether the head is the embedding table.
    """

    family: str
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    max_positions: int
    norm_eps: float
    rope: Rope
    windows: tuple[int | None, ...]
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied: bool = False

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor the decoder needs, under its Hugging Face name, with its shape."""
        shapes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (self.vocab_size, self.hidden_size),
            "model.norm.weight": (self.hidden_size,),
        }
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocab_size, self.hidden_size)
        for layer in range(self.num_layers):
            for name, shape in self._block_shapes().items():
                shapes[f"model.layers.{layer}.{name}"] = shape
        return shapes

    def _block_shapes(self) -> dict[str, tuple[int, ...]]:
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        hidden, inner = self.hidden_size, self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {
            "input_layernorm.weight": (hidden,),
            "post_attention_layernorm.weight": (hidden,),
        }
        for name, rows, columns, bias in (
            ("self_attn.q_proj", queries, hidden, self.qkv_bias),
            ("self_attn.k_proj", keys, hidden, self.qkv_bias),
            ("self_attn.v_proj", keys, hidden, self.qkv_bias),
            ("self_attn.o_proj", hidden, queries, self.output_bias),
            ("mlp.gate_proj", inner, hidden, self.mlp_bias),
            ("mlp.up_proj", inner, hidden, self.mlp_bias),
            ("mlp.down_proj", hidden, inner, self.mlp_bias),
        ):
            shapes[f"{name}.weight"] = (rows, columns)
            if bias:
                shapes[f"{name}.bias"] = (rows,)
        if self.qk_norm:
            shapes["self_attn.q_norm.weight"] = (self.head_dim,)
            shapes["self_attn.k_norm.weight"] = (self.head_dim,)
        return shapes

    @property
    def num_parameters(self) -> int:
        """Weights of the whole decoder."""
        total = 0
        for shape in self.tensor_shapes().values():
            count = 1
            for size in shape:
                count *= size
            total += count
        return total

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers that one committed token keeps in the cache."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim
