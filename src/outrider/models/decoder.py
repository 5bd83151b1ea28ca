"""One decoder for the families llama, qwen2 and qwen3: runs a draft tree over committed keys and values.

It commits nothing and knows no sampling. A node sees the committed tokens and its own ancestors; its RoPE
position is committed length + depth.
Shape letters: B batch rows, N nodes, H hidden, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from outrider.engine.cache import Cache
from outrider.engine.interfaces import TargetOutput, TargetShape
from outrider.engine.tree import DraftTree
from outrider.models.config import DecoderConfig
from outrider.models.layers import Block, BlockReader, Mix, Pass, ReadTensor, Sizes, attend, mlp, node_columns, rms_norm
from outrider.models.linear import DenseLinear, pack
from outrider.models.masks import Masks
from outrider.models.memory import give_back_freed_memory
from outrider.models.rope import Angles

LookUp = Callable[[Tensor], Tensor]


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
        self.dtype = dtype
        self.activations = torch.float32 if device.type == "cpu" and dtype == torch.float16 else dtype
        self._head = pack(read("model.embed_tokens.weight" if config.tied else "lm_head.weight"), None, dtype, device)
        self._embed = embed or self._table(read)
        give_back_freed_memory()
        reader = BlockReader(read, dtype, self.activations, device)
        self._norm = reader.vector("model.norm.weight")
        self._sizes = Sizes(config.num_heads, config.num_kv_heads, config.head_dim, config.norm_eps)
        self._blocks = []
        for layer in range(config.num_layers):
            self._blocks.append(self._load_block(reader, layer))
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
        shortest: int = 0,
        taps: tuple[int, ...] = (),
        mix: Mix | None = None,
    ) -> TargetOutput:
        """Run every node of the tree (see ``engine.interfaces.Target``); ``mix`` may stand in for its attention."""
        cos, sin = self._angles(lengths_B[:, None] + tree.depths_BN, self.activations)
        shared = Pass(cache, rows, node_columns(tree.width, lengths_B, span), span, cos, sin, mix)
        masks = Masks(tree.visible_BNN, tree.depths_BN, lengths_B, span, shortest, self.activations)
        hidden_BNH = self.embed(tree.tokens_BN)
        eps = self.config.norm_eps
        tapped: dict[int, Tensor] = {}
        for block, window in zip(self._blocks, self.config.windows, strict=True):
            normed_BNH = rms_norm(hidden_BNH, block.attention_norm, eps)
            # Each sum goes into the fresh result, not into the old state, which may be a tap.
            hidden_BNH = attend(normed_BNH, block, self._sizes, shared, masks.of(window)).add_(hidden_BNH)
            hidden_BNH = mlp(rms_norm(hidden_BNH, block.mlp_norm, eps), block).add_(hidden_BNH)
            if block.layer in taps:
                tapped[block.layer] = hidden_BNH
        return TargetOutput(rms_norm(hidden_BNH, self._norm, eps), tapped)

    def embed(self, tokens: Tensor) -> Tensor:
        """Look embeddings up: ids of any shape to [..., H] in the dtype of activations."""
        return self._embed(tokens).to(self.activations)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the head: [..., H] to [..., V], float32 (float64 of float64 weights)."""
        flat = self._head(hidden.reshape(-1, self.config.hidden_size))
        return flat.to(torch.promote_types(flat.dtype, torch.float32)).view(*hidden.shape[:-1], -1)

    def _table(self, read: ReadTensor) -> LookUp:
        """Look rows up in memory: in the head's own weights where they are the table and lie there unpacked."""
        if self.config.tied and isinstance(self._head, DenseLinear):
            table = self._head.weight
        else:
            table = read("model.embed_tokens.weight").to(device=self.device, dtype=self.dtype)
        return lambda tokens: functional.embedding(tokens, table)

    def _load_block(self, reader: BlockReader, layer: int) -> Block:
        c = self.config
        return reader.block(
            "model.layers.",
            layer,
            qk_norm=c.qk_norm,
            qkv_bias=c.qkv_bias,
            output_bias=c.output_bias,
            mlp_bias=c.mlp_bias,
        )
