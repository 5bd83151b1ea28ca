"""The small hybrid as it is trained: the text model of Qwen3.5 with its MTP head, tensors under their published names.

The mathematics is that of ``outrider.models``, which runs what this trains; tests/recipes holds it to Transformers.
Weights are float32; matrices are used in the dtype asked for, the residual stream and the recurrence stay float32.
Rows hold several documents, which see nothing of one another: attention by a mask, the convolution by positions, the
recurrent state by a decay to nothing at each document's first token.
Shape letters: B rows, T tokens of a row, H hidden, V words, D head size.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from outrider.kernels.gdn_chunk import chunk
from outrider.models.config import Rope
from outrider.models.layers import rotate
from outrider.models.rope import Angles
from outrider.train.flex import flex

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

FORGET = 60.0  # nats of decay at a document's start: e^-60 is below float32's resolution of any state


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridConfig:
    """Sizes, under the names of the published config.json; every fourth layer is full attention."""

    vocab_size: int = 49152
    hidden_size: int = 384
    intermediate_size: int = 1024
    num_hidden_layers: int = 8
    num_attention_heads: int = 6
    num_key_value_heads: int = 2
    head_dim: int = 64
    linear_num_key_heads: int = 4
    linear_num_value_heads: int = 8
    linear_key_head_dim: int = 64
    linear_value_head_dim: int = 64
    linear_conv_kernel_dim: int = 4
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-6
    rope_theta: float = 100000.0
    partial_rotary_factor: float = 0.5
    bos_token_id: int | None = None
    eos_token_id: int | None = None

    @property
    def layer_types(self) -> list[str]:
        """What each layer's mixer is."""
        return [self._kind(layer) for layer in range(self.num_hidden_layers)]

    @property
    def rotary(self) -> int:
        """Sizes of a head that are turned."""
        return int(self.head_dim * self.partial_rotary_factor)

    def published(self) -> dict[str, Any]:
        """Return the content of config.json."""
        values = asdict(self)
        theta, factor = values.pop("rope_theta"), values.pop("partial_rotary_factor")
        half = self.rotary // 2
        rope = {
            "rope_type": "default",
            "rope_theta": theta,
            "partial_rotary_factor": factor,
            "mrope_interleaved": True,
            "mrope_section": [half - 2 * (half // 3), half // 3, half // 3],
        }
        return {
            "architectures": ["Qwen3_5ForCausalLM"],
            "model_type": "qwen3_5_text",
            **values,
            "layer_types": self.layer_types,
            "full_attention_interval": 4,
            "rope_parameters": rope,
            "attn_output_gate": True,
            "output_gate_type": "swish",
            "mamba_ssm_dtype": "float32",
            "attention_bias": False,
            "hidden_act": "silu",
            "mtp_num_hidden_layers": 1,
            "mtp_use_dedicated_embeddings": False,
            "tie_word_embeddings": True,
            "dtype": "float32",
        }

    @staticmethod
    def _kind(layer: int) -> str:
        return "linear_attention" if (layer + 1) % 4 else "full_attention"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the tokens of packed rows stand.

    Attributes:
        position_BT: within their documents.
        turned: cos and signed sin of the positions.
        visible: who sees whom: a mask [B, 1, T, T], or blocks of one.
    """

    position_BT: Tensor
    turned: tuple[Tensor, Tensor]
    visible: "Tensor | BlockMask"


class Norm(nn.Module):
    """RMS norm whose weight is an offset from one; reads float32, gives ``dtype``."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight, self._eps = nn.Parameter(torch.zeros(size)), eps

    def forward(self, values: Tensor) -> Tensor:
        """Norm the last axis."""
        return functional.rms_norm(values, self.weight.shape, 1 + self.weight.to(values.dtype), self._eps)


class Project(nn.Linear):
    """A linear layer without bias whose weights are used in the dtype of what it reads."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__(inner, outer, bias=False)
        nn.init.normal_(self.weight, std=inner**-0.5 / 2)

    def forward(self, values: Tensor) -> Tensor:  # noqa: D102 -- as its base
        return functional.linear(values, self.weight.to(values.dtype))


class Mlp(nn.Module):
    """Gate, up, down."""

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj, self.up_proj = Project(hidden, inner), Project(hidden, inner)
        self.down_proj = Project(inner, hidden)

    def forward(self, values: Tensor) -> Tensor:
        """Map [..., H] to [..., H]."""
        mapped: Tensor = self.down_proj(functional.silu(self.gate_proj(values)) * self.up_proj(values))
        return mapped


class Attention(nn.Module):
    """Full attention, each head's output gated."""

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        hidden, size = config.hidden_size, config.head_dim
        self._size, self._rotary = size, config.rotary
        self.q_proj = Project(hidden, config.num_attention_heads * size * 2)
        self.k_proj = Project(hidden, config.num_key_value_heads * size)
        self.v_proj = Project(hidden, config.num_key_value_heads * size)
        self.o_proj = Project(config.num_attention_heads * size, hidden)
        self.q_norm, self.k_norm = Norm(size, config.rms_norm_eps), Norm(size, config.rms_norm_eps)

    def forward(self, normed_BTH: Tensor, places: Places) -> Tensor:
        """Mix what each token sees."""
        batch, length, _ = normed_BTH.shape
        query, gate = self.q_proj(normed_BTH).view(batch, length, -1, 2 * self._size).chunk(2, -1)
        key, value = (one(normed_BTH).view(batch, length, -1, self._size) for one in (self.k_proj, self.v_proj))
        query, key = (self._turn(one, places) for one in (self.q_norm(query), self.k_norm(key)))
        query, key, value = (one.transpose(1, 2) for one in (query, key, value))
        if isinstance(places.visible, Tensor):
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=places.visible, enable_gqa=True
            )
        else:
            mixed = flex(query, key, value, places.visible)
        gated: Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2) * gate.flatten(2).sigmoid())
        return gated

    def _turn(self, heads: Tensor, places: Places) -> Tensor:
        cos, sin = places.turned
        turned = rotate(heads[..., : self._rotary], cos.to(heads.dtype), sin.to(heads.dtype))
        return torch.cat((turned, heads[..., self._rotary :]), -1)


class PlainNorm(nn.Module):
    """RMS norm over a head whose weight is a factor."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


class GatedDeltaNet(nn.Module):
    """The recurrent mixer."""

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        hidden = config.hidden_size
        self._config = config
        keys = config.linear_num_key_heads * config.linear_key_head_dim
        values = config.linear_num_value_heads * config.linear_value_head_dim
        self._widths = (keys, keys, values)
        self.in_proj_qkv, self.in_proj_z = Project(hidden, 2 * keys + values), Project(hidden, values)
        self.in_proj_b = Project(hidden, config.linear_num_value_heads)
        self.in_proj_a = Project(hidden, config.linear_num_value_heads)
        self.conv1d = nn.Conv1d(
            2 * keys + values, 2 * keys + values, config.linear_conv_kernel_dim, groups=2 * keys + values, bias=False
        )
        heads = config.linear_num_value_heads
        self.A_log = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        step = torch.empty(heads).uniform_(-6.9, -2.3).exp()  # time steps of 0.001 to 0.1, as Mamba starts
        self.dt_bias = nn.Parameter(step + (-torch.expm1(-step)).log())
        self.norm = PlainNorm(config.linear_value_head_dim)
        self.out_proj = Project(values, hidden)

    def forward(self, normed_BTH: Tensor, places: Places) -> Tensor:
        """Mix what each token remembers."""
        config = self._config
        batch, length, _ = normed_BTH.shape
        convolved = self._convolve(self.in_proj_qkv(normed_BTH), places.position_BT).float()
        query, key, value = convolved.split_with_sizes(self._widths, -1)
        query, key = (_unit(one.view(batch, length, config.linear_num_key_heads, -1)) for one in (query, key))
        value = value.view(batch, length, config.linear_num_value_heads, -1)
        beta = self.in_proj_b(normed_BTH).float().sigmoid()
        decay = -self.A_log.exp() * functional.softplus(self.in_proj_a(normed_BTH).float() + self.dt_bias)
        decay = decay - FORGET * (places.position_BT == 0)[..., None]
        out, _ = chunk(query * config.linear_key_head_dim**-0.5, key, value, decay, beta)
        return self._gate(out, self.in_proj_z(normed_BTH))

    def _convolve(self, qkv_BTC: Tensor, position_BT: Tensor) -> Tensor:
        """Sum the last four inputs of the same document, channel by channel."""
        taps = self.conv1d.weight.to(qkv_BTC.dtype)[:, 0]
        width = taps.shape[1]
        total = qkv_BTC * taps[:, -1]
        for back in range(1, width):
            moved = functional.pad(qkv_BTC, (0, 0, back, 0))[:, : qkv_BTC.shape[1]]
            total = total + moved * taps[:, width - 1 - back] * (position_BT >= back)[..., None]
        return functional.silu(total)

    def _gate(self, out_BTED: Tensor, gate_BTC: Tensor) -> Tensor:
        normed = functional.rms_norm(out_BTED, self.norm.weight.shape, self.norm.weight, self._config.rms_norm_eps)
        gated = normed.flatten(2) * functional.silu(gate_BTC.float())
        projected: Tensor = self.out_proj(gated.to(gate_BTC.dtype))
        return projected


def _unit(heads: Tensor) -> Tensor:
    return heads * (heads.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


class Layer(nn.Module):
    """Mixer and MLP, each added to its input."""

    def __init__(self, config: HybridConfig, kind: str, dtype: torch.dtype) -> None:
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self._dtype = dtype
        self.input_layernorm, self.post_attention_layernorm = Norm(hidden, eps), Norm(hidden, eps)
        if kind == "full_attention":
            self.self_attn = Attention(config)
        else:
            self.linear_attn = GatedDeltaNet(config)
        self._full = kind == "full_attention"
        self.mlp = Mlp(config)

    def forward(self, hidden_BTH: Tensor, places: Places) -> Tensor:
        """Run one layer over all tokens."""
        mixer = self.self_attn if self._full else self.linear_attn
        hidden_BTH = hidden_BTH + mixer(self.input_layernorm(hidden_BTH).to(self._dtype), places)
        mapped: Tensor = hidden_BTH + self.mlp(self.post_attention_layernorm(hidden_BTH).to(self._dtype))
        return mapped


class Trunk(nn.Module):
    """Embedding, layers, final norm."""

    def __init__(self, config: HybridConfig, dtype: torch.dtype) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, kind, dtype) for kind in config.layer_types)
        self.norm = Norm(config.hidden_size, config.rms_norm_eps)

    def forward(self, tokens_BT: Tensor, places: Places) -> Tensor:
        """Return [B, T, H] after the final norm."""
        hidden_BTH = self.embed_tokens(tokens_BT)
        for layer in self.layers:
            hidden_BTH = layer(hidden_BTH, places)
        normed: Tensor = self.norm(hidden_BTH)
        return normed


class Heads(nn.Module):
    """The MTP module: one layer over the trunk's state and the next token's embedding."""

    def __init__(self, config: HybridConfig, dtype: torch.dtype) -> None:
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self._dtype = dtype
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = Norm(hidden, eps), Norm(hidden, eps)
        self.fc = Project(2 * hidden, hidden)
        self.layers = nn.ModuleList([Layer(config, "full_attention", dtype)])
        self.norm = Norm(hidden, eps)

    def forward(self, embedded_BTH: Tensor, hidden_BTH: Tensor, places: Places) -> Tensor:
        """Return [B, T, H] after its norm: what guesses the token after the next, and the state of another step."""
        both = torch.cat((self.pre_fc_norm_embedding(embedded_BTH), self.pre_fc_norm_hidden(hidden_BTH)), -1)
        normed: Tensor = self.norm(self.layers[0](self.fc(both.to(self._dtype)).float(), places))
        return normed


class HybridNetwork(nn.Module):
    """Trunk and MTP head.

    Args:
        config: sizes.
        dtype: what matrices are multiplied in.
    """

    def __init__(self, config: HybridConfig, dtype: torch.dtype) -> None:
        super().__init__()
        self.config = config
        self.model, self.mtp = Trunk(config, dtype), Heads(config, dtype)
        self._angles = Angles(Rope(config.rope_theta), config.rotary, torch.device("cpu"))

    def to_device(self, device: torch.device) -> "HybridNetwork":
        """Move everything."""
        self._angles = Angles(Rope(self.config.rope_theta), self.config.rotary, device)
        return self.to(device)

    def places(self, position_BT: Tensor, visible: "Tensor | BlockMask") -> Places:
        """Say where tokens stand."""
        return Places(position_BT, self._angles(position_BT, torch.float32), visible)

    def compile_layers(self) -> None:
        """Compile each kind of layer once; for GPUs."""
        for layer in [*self.model.layers, *self.mtp.layers]:
            layer.compile(dynamic=False)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy every tensor from ``tensors``."""
        self.load_state_dict(dict(tensors))
