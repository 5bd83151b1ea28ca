"""What the decoder must know of a model, in one form for all families."""

from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embedding: base, and how long contexts stretch it (keys as in Hugging Face configs)."""

    theta: float
    kind: Literal["default", "linear", "llama3", "yarn"] = "default"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeltaSizes:
    """Sizes of Gated DeltaNet layers.

    Attributes:
        key_heads, value_heads: the second a multiple of the first.
        key_size, value_size: of a head.
        convolution: tokens that the convolution before the rule sees.
    """

    key_heads: int
    value_heads: int
    key_size: int
    value_size: int
    convolution: int

    @property
    def channels(self) -> int:
        """Width of queries, keys and values side by side, which the convolution runs over."""
        return 2 * self.key_heads * self.key_size + self.value_heads * self.value_size

    def tensor_shapes(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Tensors of one layer's mixer, as ``linear_attn.*`` in Hugging Face's Qwen3.5."""
        values = self.value_heads * self.value_size
        return {
            "linear_attn.in_proj_qkv.weight": (self.channels, hidden),
            "linear_attn.in_proj_z.weight": (values, hidden),
            "linear_attn.in_proj_b.weight": (self.value_heads, hidden),
            "linear_attn.in_proj_a.weight": (self.value_heads, hidden),
            "linear_attn.conv1d.weight": (self.channels, 1, self.convolution),
            "linear_attn.A_log": (self.value_heads,),
            "linear_attn.dt_bias": (self.value_heads,),
            "linear_attn.norm.weight": (self.value_size,),
            "linear_attn.out_proj.weight": (hidden, values),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Sizes and variants of one decoder.

    Attributes:
        windows: per layer, how many positions back a query sees (0 <= q - k < W), or None for all.
        qkv_bias, output_bias, mlp_bias: which linear layers carry a bias.
        qk_norm: whether queries and keys pass an RMS norm over the head before RoPE.
        gated: whether each head's output is scaled by a gate, whose weights follow its query's in ``q_proj``.
        rotary_size: leading part of a head that RoPE rotates; None for all.
        centred_norms: whether norms scale by 1 + their weights.
        tied: whether the head is the embedding table.
        delta: sizes of the Gated DeltaNet layers, or None where there are none.
        delta_layers: which layers those are; the others are attention.
        mtp_layers: multi-token prediction layers that the checkpoint says it carries.
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
    gated: bool = False
    rotary_size: int | None = None
    centred_norms: bool = False
    tied: bool = False
    delta: DeltaSizes | None = None
    delta_layers: frozenset[int] = frozenset()
    mtp_layers: int = 0

    @property
    def attention_layers(self) -> tuple[int, ...]:
        """Numbers of the layers that keep keys and values."""
        return tuple(layer for layer in range(self.num_layers) if layer not in self.delta_layers)

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor the decoder needs, under its Hugging Face name, with its shape."""
        shapes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (self.vocab_size, self.hidden_size),
            "model.norm.weight": (self.hidden_size,),
        }
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocab_size, self.hidden_size)
        for layer in range(self.num_layers):
            for name, shape in self._block_shapes(layer).items():
                shapes[f"model.layers.{layer}.{name}"] = shape
        return shapes

    def mtp_tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor of a multi-token prediction layer, under its name in Qwen3.5's checkpoints."""
        hidden = self.hidden_size
        norms = {f"mtp.{name}.weight": (hidden,) for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")}
        layer = {f"mtp.layers.0.{name}": shape for name, shape in self._block_shapes(None).items()}
        return {**norms, "mtp.fc.weight": (hidden, 2 * hidden), **layer}

    def _block_shapes(self, layer: int | None) -> dict[str, tuple[int, ...]]:
        """Tensors of one layer; of an attention layer for None."""
        delta = self.delta if layer in self.delta_layers else None
        head_norms = ("self_attn.q_norm.weight", "self_attn.k_norm.weight") if self.qk_norm and delta is None else ()
        # The order is part of what random weights are: each tensor's come from its place.
        return {
            "input_layernorm.weight": (self.hidden_size,),
            "post_attention_layernorm.weight": (self.hidden_size,),
            **(self._attention_shapes() if delta is None else delta.tensor_shapes(self.hidden_size)),
            **self._mlp_shapes(),
            **dict.fromkeys(head_norms, (self.head_dim,)),
        }

    def _attention_shapes(self) -> dict[str, tuple[int, ...]]:
        queries, keys, hidden = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim, self.hidden_size
        shapes = _linear("self_attn.q_proj", (1 + self.gated) * queries, hidden, bias=self.qkv_bias)
        shapes |= _linear("self_attn.k_proj", keys, hidden, bias=self.qkv_bias)
        shapes |= _linear("self_attn.v_proj", keys, hidden, bias=self.qkv_bias)
        return shapes | _linear("self_attn.o_proj", hidden, queries, bias=self.output_bias)

    def _mlp_shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, inner = self.hidden_size, self.intermediate_size
        shapes = _linear("mlp.gate_proj", inner, hidden, bias=self.mlp_bias)
        shapes |= _linear("mlp.up_proj", inner, hidden, bias=self.mlp_bias)
        return shapes | _linear("mlp.down_proj", hidden, inner, bias=self.mlp_bias)

    @property
    def num_parameters(self) -> int:
        """Weights of the whole decoder."""
        return sum(prod(shape) for shape in self.tensor_shapes().values())

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers that one committed token keeps in the cache."""
        return 2 * len(self.attention_layers) * self.num_kv_heads * self.head_dim

    @property
    def state_elements(self) -> int:
        """Numbers that the matrices of a sequence's recurrent layers hold, whatever its length."""
        if self.delta is None:
            return 0
        return len(self.delta_layers) * self.delta.value_heads * self.delta.key_size * self.delta.value_size


def _linear(name: str, rows: int, columns: int, *, bias: bool) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": (rows, columns)}
    return {**shapes, f"{name}.bias": (rows,)} if bias else shapes
