"""What a DFlash drafter is, in one form for all formats. Free of torch.

A block is the anchor and ``block_size - 1`` masks; one pass predicts a token at each masked place. Layers see the
target's features of all committed tokens as keys and values, and the slots of the block as their mask allows.
Source: DFlash (arXiv 2602.06036); DFlash2 (z-lab, 2026); DSpark (arXiv 2607.05147).
"""

from dataclasses import dataclass
from typing import Literal

from outrider.models.config import Rope


@dataclass(frozen=True, slots=True)
class LayerMask:
    """Who sees whom in one layer, on one axis of positions: context, then block.

    Attributes:
        window: a query sees keys less than this many positions away, itself counted; None for all.
        causal: whether a slot of the block sees only itself and the slots before it.
    """

    window: int | None
    causal: bool


@dataclass(frozen=True, slots=True)
class Convolution:
    """DFlash2: a short causal convolution over the block around each sublayer, its kernel made from the input.

    Attributes:
        taps: slots it reaches back, the slot itself counted.
        group: neighbouring channels that share a dynamic coefficient.
    """

    taps: int
    group: int


@dataclass(frozen=True, slots=True)
class Selector:
    """DFlash2: scores the best candidates of a slot by the token chosen before.

    Attributes:
        rank: width of the codebooks.
        top_k: candidates a slot.
    """

    rank: int
    top_k: int


@dataclass(frozen=True, slots=True)
class Markov:
    """DSpark: adds a low-rank bias to a slot's logits that depends on the token before.

    Attributes:
        rank: of the bias.
        kind: how the bias is made: from the token before alone, gated by the slot's hidden state, or by a
            recurrence over the block.
    """

    rank: int
    kind: Literal["vanilla", "gated", "rnn"]


@dataclass(frozen=True, slots=True)
class Confidence:
    """DSpark: predicts for each slot whether its token will be accepted.

    Attributes:
        with_markov: whether it also reads the embedding of the token before.
    """

    with_markov: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DFlashConfig:
    """Sizes and variants of one drafter.

    Attributes:
        kind: which of the methods.
        origin: which format the config was written in.
        layers: one mask a layer.
        block_size: slots of a block, the anchor's included.
        anchor_predicts: whether the anchor's slot predicts the next token too, every slot its successor
            (DeepSpec's layout); else a slot predicts the token at its own place and the anchor's none.
        mask_token: what stands in the masked slots; None where ``mask_embedding`` takes its place.
        mask_embedding: a vector of its own stands in the masked slots (file ``mask_embedding.pt``).
        taps: target blocks whose outputs feed it, 0-based, in the order its ``fc`` expects.
        target_hidden_size: width of those outputs.
        num_target_layers: depth of the target, where the config tells it.
        draft_vocab_size: words of its own head where they are fewer than the target's; tables ``d2t``, ``t2d``.
        own_embedding, own_head: tensors it brings instead of sharing the target's.
        embedding_scale: on the block's embeddings.
        output_multiplier: on the logits, before the cap.
        soft_cap: logits are bent to stay within it; None for none.
        value_scale: on attention values.
        sinks: whether attention has a learnt sink a head.
        biases: whether attention's linear layers carry biases.
    """

    kind: Literal["dflash", "dflash2", "dspark"] = "dflash"
    origin: Literal["z-lab", "speculators", "gguf"] = "z-lab"
    vocab_size: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    max_positions: int
    norm_eps: float
    rope: Rope
    layers: tuple[LayerMask, ...]
    block_size: int
    anchor_predicts: bool = False
    mask_token: int | None
    mask_embedding: bool = False
    taps: tuple[int, ...]
    target_hidden_size: int
    num_target_layers: int | None = None
    draft_vocab_size: int | None = None
    own_embedding: bool = False
    own_head: bool = False
    embedding_scale: float = 1.0
    output_multiplier: float = 1.0
    soft_cap: float | None = None
    value_scale: float = 1.0
    sinks: bool = False
    biases: bool = False
    convolution: Convolution | None = None
    selector: Selector | None = None
    markov: Markov | None = None
    confidence: Confidence | None = None

    @property
    def num_layers(self) -> int:
        """Draft layers, not the target's."""
        return len(self.layers)

    @property
    def max_tokens(self) -> int:
        """Tokens one block proposes."""
        return self.block_size - (0 if self.anchor_predicts else 1)

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor the drafter needs, under its z-lab name, with its shape."""
        hidden = self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "fc.weight": (hidden, len(self.taps) * self.target_hidden_size),
            "hidden_norm.weight": (hidden,),
            "norm.weight": (hidden,),
        }
        if self.own_embedding:
            shapes["embed_tokens.weight"] = (self.vocab_size, hidden)
        if self.own_head:
            shapes["lm_head.weight"] = (self.draft_vocab_size or self.vocab_size, hidden)
        if self.draft_vocab_size is not None:
            shapes["d2t"] = (self.draft_vocab_size,)
        for layer in range(self.num_layers):
            for name, shape in self._layer_shapes().items():
                shapes[f"layers.{layer}.{name}"] = shape
        return shapes | self._head_shapes()

    def _layer_shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, inner, size = self.hidden_size, self.intermediate_size, self.head_dim
        queries, keys = self.num_heads * size, self.num_kv_heads * size
        shapes: dict[str, tuple[int, ...]] = {
            "input_layernorm.weight": (hidden,),
            "post_attention_layernorm.weight": (hidden,),
            "self_attn.q_proj.weight": (queries, hidden),
            "self_attn.k_proj.weight": (keys, hidden),
            "self_attn.v_proj.weight": (keys, hidden),
            "self_attn.o_proj.weight": (hidden, queries),
            "self_attn.q_norm.weight": (size,),
            "self_attn.k_norm.weight": (size,),
            "mlp.gate_proj.weight": (inner, hidden),
            "mlp.up_proj.weight": (inner, hidden),
            "mlp.down_proj.weight": (hidden, inner),
        }
        if self.biases:
            rows = {"q_proj": queries, "k_proj": keys, "v_proj": keys, "o_proj": hidden}
            shapes |= {f"self_attn.{name}.bias": (count,) for name, count in rows.items()}
        if self.sinks:
            shapes["self_attn.sinks"] = (self.num_heads,)
        if self.convolution is not None:
            taps, group = self.convolution.taps, self.convolution.group
            for part in ("attention_conv", "mlp_conv"):
                shapes[f"{part}.base_kernel"] = (2, taps, hidden)
                shapes[f"{part}.kernel_projection.weight"] = (2 * taps * hidden // group, hidden)
        return shapes

    def _head_shapes(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        if self.selector is not None:
            rank = self.selector.rank
            shapes["candidate_selector.predecessor_codebook"] = (self.vocab_size, rank)
            shapes["candidate_selector.successor_codebook"] = (self.vocab_size, rank)
            shapes["candidate_selector.hidden_projection.weight"] = (rank, self.hidden_size)
        if self.markov is not None:
            shapes |= self._markov_shapes(self.markov)
        if self.confidence is not None:
            rank = self.markov.rank if self.markov is not None and self.confidence.with_markov else 0
            shapes["confidence_head.proj.weight"] = (1, self.hidden_size + rank)
            shapes["confidence_head.proj.bias"] = (1,)
        return shapes

    def _markov_shapes(self, markov: Markov) -> dict[str, tuple[int, ...]]:
        rank, hidden = markov.rank, self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "markov_head.markov_w1.weight": (self.vocab_size, rank),
            "markov_head.markov_w2.weight": (self.draft_vocab_size or self.vocab_size, rank),
        }
        if markov.kind == "gated":
            shapes["markov_head.gate_proj.weight"] = (rank, hidden + rank)
            shapes["markov_head.gate_proj.bias"] = (rank,)
        if markov.kind == "rnn":
            shapes["markov_head.joint_proj.weight"] = (3 * rank, 2 * rank + hidden)
            shapes["markov_head.joint_proj.bias"] = (3 * rank,)
        return shapes
