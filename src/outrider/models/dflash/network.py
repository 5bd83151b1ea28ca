"""A DFlash drafter: one pass over a block of masks gives the logits of all its slots.

Context keys are made once for each committed token, from the target's taps; they stay in a cache of the drafter's
own, which the slots of a block see and never change for good. Source: DFlash (arXiv 2602.06036), sections on
architecture and inference; layer masks as in ``models.dflash.config``.
Shape letters: B batch rows, N slots of the block, K slots that predict, F = taps * target width, H hidden, V words,
G key/value heads, D head size.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from outrider.engine.cache import Cache
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.dflash.convolution import read_convolutions
from outrider.models.dflash.heads import read_confidence, read_correction
from outrider.models.dflash.packed import PackedBlocks
from outrider.models.layers import BlockReader, Pass, ReadTensor, Sizes, rms_norm
from outrider.models.linear import Linear
from outrider.models.masks import Masks, Visible
from outrider.models.rope import Angles


@dataclass(frozen=True, slots=True)
class Draft:
    """What one pass over the blocks of a batch gives.

    Attributes:
        hidden_BKH: after the final norm, of the slots that predict, in the order of the text.
        logits_BKV: of each slot alone, over the drafter's own words (``DFlash.words``).
    """

    hidden_BKH: Tensor
    logits_BKV: Tensor


class DFlash:
    """The network of a drafter, on a target whose embeddings and head it shares.

    Args:
        config: what it is.
        read: gives a tensor by its z-lab name.
        target: what it drafts for.
        mask_embedding: [H], where the config says that it has one.

    Attributes:
        config: as given.
        correction: scores a slot by the token before it (DFlash2, DSpark), or None.
        confidence: foresees acceptance (DSpark), or None.
        target_vocab: words of the target.
        words: target id of each of its words, or None where they are the target's.
    """

    def __init__(
        self, config: DFlashConfig, read: ReadTensor, target: Decoder, mask_embedding: Tensor | None = None
    ) -> None:
        self.device = target.device
        self._read_as(config)
        self._target, self.target_vocab = target, target.config.vocab_size
        # Features of some targets overflow fp16 (the fc sums several of them): there the drafter takes bfloat16.
        narrow = target.activations == torch.float16
        dtype, activations = (torch.bfloat16,) * 2 if narrow else (target.dtype, target.activations)
        reader = BlockReader(_scaling_values(read, config.value_scale), dtype, activations, target.device)
        self._fc = reader.linear("fc")
        self._hidden_norm, self._norm = reader.vector("hidden_norm.weight"), reader.vector("norm.weight")
        self._blocks = [
            reader.block(
                "layers.",
                layer,
                qk_norm=True,
                qkv_bias=config.biases,
                output_bias=config.biases,
                mlp_bias=False,
                sinks=config.sinks,
            )
            for layer in range(config.num_layers)
        ]
        self._context = self._read_context(reader)
        self._around = read_convolutions(config, reader)
        self.correction, self.confidence = read_correction(config, reader), read_confidence(config, reader)
        self._head: Linear | None = reader.linear("lm_head") if config.own_head else None
        self._table = reader.vector("embed_tokens.weight") if config.own_embedding else None
        self.words = self._read_words(read)
        self._mask_embedding = None if mask_embedding is None else mask_embedding.to(self._norm)

    def _read_context(self, reader: BlockReader) -> Linear:
        """Keys and values of all layers from one context feature, in one product."""
        config = self.config
        names = [f"layers.{layer}.self_attn.{part}_proj" for layer in range(config.num_layers) for part in "kv"]
        return reader.linear(*names, bias=config.biases)

    def _read_words(self, read: ReadTensor) -> Tensor | None:
        if self.config.draft_vocab_size is None:
            return None
        offsets = read("d2t").to(device=self.device, dtype=torch.int64)
        return offsets + torch.arange(len(offsets), device=self.device)

    def variant(self, config: DFlashConfig) -> "DFlash":
        """Return the same weights under another reading: masks, taps, mask token, block size, scales."""
        other = copy(self)
        other._read_as(config)  # noqa: SLF001 -- one of its own kind
        if self.correction is not None:
            other.correction = self.correction.read_as(config)
        return other

    def _read_as(self, config: DFlashConfig) -> None:
        self.config = config
        self._sizes = Sizes(config.num_heads, config.num_kv_heads, config.head_dim, config.norm_eps)
        self._angles = Angles(config.rope, config.head_dim, self.device)

    def new_cache(self, *, slots: int, max_len: int) -> Cache:
        """Room for the context keys of ``slots`` sequences of ``max_len`` tokens, and a block behind them.

        Context is never evicted, so a window that ends in the block finds all its W - 1 + N keys.
        """
        return Cache(
            layers=range(self.config.num_layers),
            slots=slots,
            rows=max_len + self.config.block_size,
            heads=self.config.num_kv_heads,
            head_dim=self.config.head_dim,
            dtype=self._norm.dtype,
            device=self.device,
        )

    @torch.inference_mode()
    def remember(self, features_BNF: Tensor, cache: Cache, rows: slice, lengths_B: Tensor, *, span: int | None) -> None:
        """Make the context keys of newly committed tokens.

        Args:
            features_BNF: the taps of each token, side by side in the config's order.
            cache: made by ``new_cache``.
            rows: the slots of the batch.
            lengths_B: tokens that each row remembers already; the new ones follow.
            span: longest of them + N, or None where the host does not know it.
        """
        config, sizes = self.config, self._sizes
        batch, nodes, width = features_BNF.shape
        features_RF = features_BNF.reshape(-1, width).to(self._norm.dtype)
        context_RH = rms_norm(self._fc(features_RF), self._hidden_norm, sizes.eps)
        kv_BNLX = self._context(context_RH).view(batch, nodes, config.num_layers, 2 * sizes.keys * sizes.head)
        positions_BN = lengths_B[:, None] + torch.arange(nodes, device=lengths_B.device)
        cos, sin = self._angles(positions_BN, kv_BNLX.dtype)
        computing = self._target.computing
        shared = Pass(cache, rows, computing.columns(nodes, lengths_B, span), span or cache.rows, cos, sin)
        for block in self._blocks:
            computing.keep(kv_BNLX[:, :, block.layer], block, sizes, shared)

    @torch.inference_mode()
    def draft(
        self, anchors_B: Tensor, cache: Cache, rows: slice, lengths_B: Tensor, *, span: int | None, shortest: int = 0
    ) -> Draft:
        """Run the blocks that start with the anchors.

        Args:
            anchors_B: last committed token of each row, whose features do not exist yet.
            cache: context keys; the block's own are left behind them.
            rows: the slots of the batch.
            lengths_B: tokens that each row remembers, the anchor not among them.
            span: longest of them + N, or None where the host does not know it.
            shortest: what no row is below, known on the host.
        """
        width, read = self.config.block_size, cache.rows if span is None else span
        depths_BN = torch.arange(width, device=self.device).expand(len(anchors_B), width)
        cos, sin = self._angles(lengths_B[:, None] + depths_BN, self._norm.dtype)
        shared = Pass(cache, rows, self._target.computing.columns(width, lengths_B, span), read, cos, sin)
        masks = self._masks(depths_BN, lengths_B, read, shortest)
        hidden_BNH = self._run(self._embed(anchors_B), shared, lambda mask: masks[mask.causal].of(mask.window))
        hidden_BKH = self._predicting(hidden_BNH)
        return Draft(hidden_BKH, self.logits(hidden_BKH))

    @torch.inference_mode()
    def draft_within(self, text_T: Tensor, cache: Cache, row: int, anchors: list[int]) -> Draft:
        """Run the blocks of many anchors of one text in one pass: what each would have drafted there.

        Args: as for ``hidden_within``.
        """
        hidden_BKH = self.hidden_within(text_T, cache, row, anchors)
        return Draft(hidden_BKH, self.logits(hidden_BKH))

    @torch.inference_mode()
    def hidden_within(self, text_T: Tensor, cache: Cache, row: int, anchors: list[int]) -> Tensor:
        """Run the blocks of many anchors of one text in one pass, up to the head; return ``Draft.hidden_BKH``.

        Args:
            text_T: token ids of the whole text.
            cache: with the context keys of all of it, and room for the blocks behind them.
            row: its slot.
            anchors: positions of the anchors; each sees the context before it and its own block alone.
        """
        packed = PackedBlocks(torch.tensor(anchors, device=self.device), self.config.block_size, len(text_T))
        cos, sin = self._angles(packed.positions_N[None], self._norm.dtype)
        columns = slice(len(text_T), packed.span)
        shared = Pass(cache, slice(row, row + 1), columns, packed.span, cos, sin)
        embedded_BNH = self._embed(text_T[packed.anchors_B])
        return self._predicting(self._run(embedded_BNH, shared, lambda mask: packed.visible(mask, self._norm.dtype)))

    def _run(self, hidden_BNH: Tensor, shared: Pass, visible: Callable[[LayerMask], Visible]) -> Tensor:
        """All layers and the final norm over the embedded slots."""
        eps, computing, update = self._sizes.eps, self._target.computing, None
        for block, around, mask in zip(self._blocks, self._around, self.config.layers, strict=True):
            mixing = partial(computing.attend, block=block, sizes=self._sizes, shared=shared, visible=visible(mask))
            hidden_BNH, normed_BNH = computing.add_norm(hidden_BNH, update, block.attention_norm, eps)
            hidden_BNH, normed_BNH = computing.add_norm(
                hidden_BNH, around.attention(normed_BNH, mixing), block.mlp_norm, eps
            )
            update = around.mlp(normed_BNH, partial(computing.mlp, block=block))
        return computing.add_norm(hidden_BNH, update, self._norm, eps)[1]

    def _predicting(self, hidden_BNH: Tensor) -> Tensor:
        return hidden_BNH[:, self.config.block_size - self.config.max_tokens :]

    def _masks(self, depths_BN: Tensor, lengths_B: Tensor, span: int, shortest: int) -> dict[bool, Masks]:
        batch, width = depths_BN.shape
        both = torch.ones(width, width, dtype=torch.bool, device=self.device)
        return {
            causal: Masks(seen.expand(batch, width, width), depths_BN, lengths_B, span, shortest, self._norm.dtype)
            for causal, seen in ((False, both), (True, both.tril()))
        }

    def _embed(self, anchors_B: Tensor) -> Tensor:
        config = self.config
        tokens_BN = anchors_B.new_full((len(anchors_B), config.block_size), config.mask_token or 0)
        tokens_BN[:, 0] = anchors_B
        table = self._table
        hidden_BNH = self._target.embed(tokens_BN) if table is None else torch.nn.functional.embedding(tokens_BN, table)
        hidden_BNH = hidden_BNH.to(self._norm.dtype) * config.embedding_scale
        if self._mask_embedding is not None:
            hidden_BNH[:, 1:] = self._mask_embedding * config.embedding_scale
        return hidden_BNH

    def logits(self, hidden_BKH: Tensor) -> Tensor:
        """Logits of hidden states, of any number of rows and slots, over the drafter's own words, [B, K, V]."""
        config = self.config
        if self._head is None:
            logits_BKV = self._target.logits(hidden_BKH.to(self._target.activations))
        else:
            flat = self._head(hidden_BKH.reshape(-1, config.hidden_size))
            logits_BKV = flat.to(torch.promote_types(flat.dtype, torch.float32)).view(*hidden_BKH.shape[:-1], -1)
        if config.output_multiplier != 1:
            logits_BKV = logits_BKV * config.output_multiplier
        if config.soft_cap is not None:
            logits_BKV = torch.tanh(logits_BKV / config.soft_cap) * config.soft_cap
        return logits_BKV


def _scaling_values(read: ReadTensor, scale: float) -> ReadTensor:
    """Scale the projection to attention values, and so the values; rounded once, to the weights' own type."""

    def scaled(name: str) -> Tensor:
        tensor = read(name)
        return tensor.double() * scale if scale != 1 and ".self_attn.v_proj." in name else tensor

    return scaled
