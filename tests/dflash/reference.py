"""The DFlash network once more, from its mathematics: dense, no cache, explicit boolean masks, plain torch.

Every block of a text is computed at once: all queries against all keys of one axis (the context's positions, then the
slots of all blocks), and a mask says who sees whom. Differentiable, in whatever dtype the weights have.
Shape letters: S texts, T context positions, F taps * target width, P blocks of a text, N slots of a block, K slots
that predict, Q = P * N, H hidden, A heads, D head size, V words.
"""

import torch
from torch import Tensor
from torch.nn.functional import silu

from outrider.models.config import Rope
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.rope import frequencies

Tensors = dict[str, Tensor]


def draft_logits(  # noqa: PLR0917 -- four parts of a drafter, two of a text
    config: DFlashConfig, tensors: Tensors, embed: Tensor, head: Tensor, features_TF: Tensor, anchor: int
) -> Tensor:
    """Logits [K, V] of the block whose anchor stands after the context."""
    hidden_NH = draft_hidden(config, tensors, embed, features_TF, anchor)
    return logits_of(config, tensors, head, hidden_NH[first_slot(config) :])


def draft_hidden(config: DFlashConfig, tensors: Tensors, embed: Tensor, features_TF: Tensor, anchor: int) -> Tensor:
    """Hidden states [N, H] of all slots, after the final norm, for one block after the context."""
    anchors_SP, places_SP = torch.tensor([[anchor]]), torch.tensor([[len(features_TF)]])
    return hidden_of_blocks(config, tensors, embed, features_TF[None], anchors_SP=anchors_SP, places_SP=places_SP)[0, 0]


def block_logits(
    config: DFlashConfig,
    tensors: Tensors,
    embed: Tensor,
    head: Tensor,
    features_STF: Tensor,
    *,
    texts_ST: Tensor,
    places_SP: Tensor,
) -> Tensor:
    """Logits [S, P, K, V] of many blocks: each text's token at each place is the anchor of one."""
    anchors_SP = texts_ST.gather(1, places_SP)
    hidden_SPNH = hidden_of_blocks(config, tensors, embed, features_STF, anchors_SP=anchors_SP, places_SP=places_SP)
    return logits_of(config, tensors, head, hidden_SPNH[:, :, first_slot(config) :])


def hidden_of_blocks(
    config: DFlashConfig,
    tensors: Tensors,
    embed: Tensor,
    features_STF: Tensor,
    *,
    anchors_SP: Tensor,
    places_SP: Tensor,
) -> Tensor:
    """Hidden states [S, P, N, H] of all slots of all blocks, after the final norm."""
    texts, context, _ = features_STF.shape
    size = config.block_size
    context_STH = rms(features_STF @ tensors["fc.weight"].T, tensors["hidden_norm.weight"], config.norm_eps)
    slots_SPN = places_SP[:, :, None] + torch.arange(size)
    slots_SQ = slots_SPN.reshape(texts, -1)
    positions_SX = torch.cat((torch.arange(context).expand(texts, -1), slots_SQ), 1)
    axis = Axis(config, positions_SX, context, embed.dtype)
    hidden_SQH = embed_blocks(config, tensors, embed, anchors_SP).reshape(texts, -1, config.hidden_size)
    for layer, mask in enumerate(config.layers):
        parts = {name.removeprefix(f"layers.{layer}."): t for name, t in tensors.items() if f"layers.{layer}." in name}
        hidden_SQH = draft_layer(config, parts, mask, axis, context_STH=context_STH, hidden_SQH=hidden_SQH)
    normed = rms(hidden_SQH, tensors["norm.weight"], config.norm_eps)
    return normed.reshape(texts, -1, size, config.hidden_size)


def embed_blocks(config: DFlashConfig, tensors: Tensors, embed: Tensor, anchors_SP: Tensor) -> Tensor:
    """The anchor's embedding, then masks, [S, P, N, H]."""
    table = tensors["embed_tokens.weight"] if config.own_embedding else embed
    mask_H = tensors["mask_embedding"] if config.mask_embedding else table[config.mask_token]
    masks = mask_H.expand(*anchors_SP.shape, config.block_size - 1, -1)
    return torch.cat((table[anchors_SP][:, :, None], masks), 2) * config.embedding_scale


class Axis:
    """The axis of keys: what stands at which position and who may see it."""

    def __init__(self, config: DFlashConfig, positions_SX: Tensor, context: int, dtype: torch.dtype) -> None:
        self.positions_SX, self.context, self.size = positions_SX, context, config.block_size
        self.cos, self.sin = cos_and_sin(config.rope, config.head_dim, positions_SX, dtype)

    def visible(self, mask: LayerMask) -> Tensor:
        """Whether a slot sees a key, [S, Q, X]: context before its anchor, its own block, within window and order."""
        total = self.positions_SX.shape[1] - self.context
        keys_S1X = self.positions_SX[:, None]
        queries_SQ1 = self.positions_SX[:, self.context :, None]
        block_Q1 = (torch.arange(total) // self.size)[:, None]
        anchor_SQ1 = queries_SQ1 - (torch.arange(total) % self.size)[:, None]
        in_context_X = torch.arange(self.positions_SX.shape[1]) < self.context
        block_X = torch.cat((torch.full((self.context,), -1), block_Q1[:, 0]))
        allowed = torch.where(in_context_X, keys_S1X < anchor_SQ1, block_X == block_Q1)
        back = queries_SQ1 - keys_S1X
        if mask.causal:
            allowed = allowed & (back >= 0)
        if mask.window is not None:
            allowed = allowed & (back < mask.window) & (-back < mask.window)
        return allowed


def draft_layer(
    config: DFlashConfig, parts: Tensors, mask: LayerMask, axis: Axis, *, context_STH: Tensor, hidden_SQH: Tensor
) -> Tensor:
    """One block of the network: attention over context and block, then the gated MLP, each added to its input."""

    def attention(entering_SQH: Tensor) -> Tensor:
        keys_from = torch.cat((context_STH, entering_SQH), 1)
        return attend(config, parts, axis, axis.visible(mask), queries_from=entering_SQH, keys_from=keys_from)

    def convolved(name: str, sublayer, normed_SQH: Tensor) -> Tensor:
        if config.convolution is None:
            return sublayer(normed_SQH)
        kernels = dynamic_kernels(config, parts, name, normed_SQH)
        return convolve(sublayer(convolve(normed_SQH, kernels[0], axis.size)), kernels[1], axis.size)

    normed = rms(hidden_SQH, parts["input_layernorm.weight"], config.norm_eps)
    hidden_SQH = hidden_SQH + convolved("attention_conv", attention, normed)
    normed = rms(hidden_SQH, parts["post_attention_layernorm.weight"], config.norm_eps)
    return hidden_SQH + convolved("mlp_conv", lambda entering: gated_mlp(parts, entering), normed)


def attend(
    config: DFlashConfig, parts: Tensors, axis: Axis, visible_SQX: Tensor, *, queries_from: Tensor, keys_from: Tensor
) -> Tensor:
    """Grouped-query attention with normed, rotated queries and keys."""
    groups = config.num_heads // config.num_kv_heads

    def heads(name: str, values: Tensor) -> Tensor:
        projected = project(parts, f"self_attn.{name}_proj", values)
        return projected.reshape(*values.shape[:2], -1, config.head_dim)

    def normed(name: str, values: Tensor) -> Tensor:
        return rms(heads(name, values), parts[f"self_attn.{name}_norm.weight"], config.norm_eps)

    query_SQAD = rotated(normed("q", queries_from), axis.cos[:, axis.context :], axis.sin[:, axis.context :])
    key_SXAD = rotated(normed("k", keys_from), axis.cos, axis.sin).repeat_interleave(groups, 2)
    value_SXAD = (heads("v", keys_from) * config.value_scale).repeat_interleave(groups, 2)
    scores_SAQX = torch.einsum("sqad,sxad->saqx", query_SQAD, key_SXAD) / config.head_dim**0.5
    scores_SAQX = scores_SAQX.masked_fill(~visible_SQX[:, None], float("-inf"))
    if config.sinks:
        sink = parts["self_attn.sinks"][None, :, None, None].expand(*scores_SAQX.shape[:3], 1)
        weights_SAQX = torch.cat((scores_SAQX, sink), -1).softmax(-1)[..., :-1]
    else:
        weights_SAQX = scores_SAQX.softmax(-1)
    mixed = torch.einsum("saqx,sxad->sqad", weights_SAQX, value_SXAD)
    return project(parts, "self_attn.o_proj", mixed.flatten(2))


def project(parts: Tensors, name: str, values: Tensor) -> Tensor:
    product = values @ parts[f"{name}.weight"].T
    bias = parts.get(f"{name}.bias")
    return product if bias is None else product + bias


def gated_mlp(parts: Tensors, values: Tensor) -> Tensor:
    gate, up = (project(parts, f"mlp.{name}_proj", values) for name in ("gate", "up"))
    return project(parts, "mlp.down_proj", silu(gate) * up)


def rms(values: Tensor, weight: Tensor, eps: float) -> Tensor:
    return values / (values.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def cos_and_sin(rope: Rope, head_dim: int, positions_SX: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Of both halves of a head, [S, X, 1, D]; angles in float32, as the models were trained."""
    frequency, scale = frequencies(rope, head_dim)
    angles = positions_SX[:, :, None, None].float() * torch.cat((frequency, frequency))
    return (angles.cos() * scale).to(dtype), (angles.sin() * scale).to(dtype)


def rotated(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Coordinates i and i + D/2 turn together."""
    one, two = heads.chunk(2, -1)
    return heads * cos + torch.cat((-two, one), -1) * sin


def dynamic_kernels(config: DFlashConfig, parts: Tensors, name: str, values_SQH: Tensor) -> list[Tensor]:
    """DFlash2: the kernel of the way in and of the way out for each slot, [S, Q, taps, H] each."""
    taps, group = config.convolution.taps, config.convolution.group
    made = values_SQH @ parts[f"{name}.kernel_projection.weight"].T
    made = made.reshape(*values_SQH.shape[:2], 2, taps, config.hidden_size // group)
    base = parts[f"{name}.base_kernel"]
    channel = torch.arange(config.hidden_size) // group
    return [base[side] + made[:, :, side][..., channel] for side in (0, 1)]


def convolve(values_SQH: Tensor, kernel_SQTH: Tensor, block: int) -> Tensor:
    """Sum over taps of kernel * the value so many slots before, nothing before the block's first."""
    slot = torch.arange(values_SQH.shape[1]) % block
    total = torch.zeros_like(values_SQH)
    for back in range(kernel_SQTH.shape[2]):
        before = values_SQH.roll(back, 1) * (slot >= back)[:, None]
        total = total + kernel_SQTH[:, :, back] * before
    return total


def logits_of(config: DFlashConfig, tensors: Tensors, head: Tensor, hidden: Tensor) -> Tensor:
    table = tensors["lm_head.weight"] if config.own_head else head
    logits = hidden @ table.T * config.output_multiplier
    if config.soft_cap is None:
        return logits
    return config.soft_cap * torch.tanh(logits / config.soft_cap)


def first_slot(config: DFlashConfig) -> int:
    """First slot whose output counts."""
    return 0 if config.anchor_predicts else 1
