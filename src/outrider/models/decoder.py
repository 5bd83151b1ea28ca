"""One decoder for all families of targets: runs a draft tree over what is committed.

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
from outrider.models.computing import computing_on
from outrider.models.config import DecoderConfig
from outrider.models.gdn import DeltaBlock, Lineage, new_states, read_delta_block
from outrider.models.layers import Block, BlockReader, Mix, Pass, ReadTensor, Sizes
from outrider.models.linear import DenseLinear, SkinnyLinear, pack
from outrider.models.masks import Masks
from outrider.models.memory import give_back_freed_memory
from outrider.models.rope import Angles

LookUp = Callable[[Tensor], Tensor]


class Decoder:
    """A target: attention or Gated DeltaNet layers, gated MLPs, RMS norms.

    Args:
        config: sizes and variants.
        read: gives a tensor by its Hugging Face name.
        dtype: of weights and, but for float16 on a CPU (fp32 there), of activations.
        device: where it runs.
        embed: looks rows of the embedding table up; None holds the table in memory.

    Attributes:
        computing: how layers are computed there.
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
        self.activations = _activations(dtype, device)
        self.computing = computing_on(device, self.activations)
        # The head and the table are not of the matrices that published float8 checkpoints narrow.
        self._wide = torch.bfloat16 if dtype == torch.float8_e4m3fn else dtype
        head = read("model.embed_tokens.weight" if config.tied else "lm_head.weight")
        self._head = pack(head, None, self._wide, device)
        del head
        self._embed = embed or self._table(read)
        give_back_freed_memory()
        reader = BlockReader(read, dtype, self.activations, device, centred=config.centred_norms)
        self._norm = reader.norm("model.norm.weight")
        self._sizes = Sizes(config.num_heads, config.num_kv_heads, config.head_dim, config.norm_eps)
        self._blocks: list[Block | DeltaBlock] = []
        for layer in range(config.num_layers):
            self._blocks.append(self._load_block(reader, layer))
            give_back_freed_memory()
        precision = torch.promote_types(self.activations, torch.float32)
        self._angles = Angles(config.rope, config.rotary_size or config.head_dim, device, precision)

    @property
    def shape(self) -> TargetShape:
        """Sizes the engine needs."""
        c = self.config
        return TargetShape(c.vocab_size, c.hidden_size, c.num_layers, c.max_positions)

    def new_cache(self, *, slots: int, max_len: int) -> Cache:
        """Room for ``slots`` sequences of ``max_len`` rows."""
        c, states = self.config, None
        if c.delta is not None:
            states = new_states(c.delta, c.delta_layers, slots=slots, activations=self.activations, device=self.device)
        return Cache(
            layers=c.attention_layers,
            slots=slots,
            rows=max_len,
            heads=c.num_kv_heads,
            head_dim=c.head_dim,
            dtype=self.activations,
            device=self.device,
            states=states,
        )

    @torch.inference_mode()
    def forward(
        self,
        tree: DraftTree,
        cache: Cache,
        rows: slice,
        lengths_B: Tensor,
        *,
        span: int | None,
        shortest: int = 0,
        taps: tuple[int, ...] = (),
        mix: Mix | None = None,
    ) -> TargetOutput:
        """Run every node of the tree (see ``engine.interfaces.Target``); ``mix`` may stand in for its attention."""
        cos, sin = self._angles(lengths_B[:, None] + tree.depths_BN, self.activations)
        computing, eps, read = self.computing, self.config.norm_eps, cache.rows if span is None else span
        shared = Pass(cache, rows, computing.columns(tree.width, lengths_B, span), read, cos, sin, mix)
        masks = Masks(tree.visible_BNN, tree.depths_BN, lengths_B, read, shortest, self.activations, masked=tree.kept)
        lineage = None
        if self.config.delta is not None:
            lineage = computing.lineage(tree, self.config.delta, cache, rows)
        hidden_BNH, update = self.embed(tree.tokens_BN), None
        tapped: dict[int, Tensor] = {}
        for block in self._blocks:
            norm = block.mixer_norm if isinstance(block, DeltaBlock) else block.attention_norm
            hidden_BNH, normed_BNH = computing.add_norm(hidden_BNH, update, norm, eps)
            if block.layer - 1 in taps:
                tapped[block.layer - 1] = hidden_BNH
            update = self._mix(normed_BNH, block, shared, masks, lineage)
            hidden_BNH, normed_BNH = computing.add_norm(hidden_BNH, update, block.mlp_norm, eps)
            update = computing.mlp(normed_BNH, block)
        hidden_BNH, normed_BNH = computing.add_norm(hidden_BNH, update, self._norm, eps)
        if len(self._blocks) - 1 in taps:
            tapped[len(self._blocks) - 1] = hidden_BNH
        return TargetOutput(normed_BNH, tapped)

    def _mix(
        self, normed_BNH: Tensor, block: Block | DeltaBlock, shared: Pass, masks: Masks, lineage: Lineage | None
    ) -> Tensor:
        """Mixer of one layer."""
        c = self.config
        if isinstance(block, DeltaBlock):
            assert c.delta is not None  # noqa: S101 -- it has such a layer
            assert lineage is not None  # noqa: S101
            return self.computing.delta(normed_BNH, block, c.delta, c.norm_eps, shared.rows, shared.cache, lineage)
        visible = masks.of(c.windows[block.layer])
        return self.computing.attend(normed_BNH, block, self._sizes, shared, visible)

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
        if self.config.tied and isinstance(self._head, DenseLinear | SkinnyLinear):
            table = self._head.weight
        else:
            table = read("model.embed_tokens.weight").to(device=self.device, dtype=self._wide)
        return lambda tokens: functional.embedding(tokens, table)

    def _load_block(self, reader: BlockReader, layer: int) -> Block | DeltaBlock:
        c = self.config
        if layer in c.delta_layers:
            return read_delta_block(reader, layer)
        return read_attention_block(reader, c, "model.layers.", layer)


def _activations(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """What flows between weights of this type."""
    if dtype == torch.float16 and device.type == "cpu":
        return torch.float32
    return torch.bfloat16 if dtype == torch.float8_e4m3fn else dtype


def read_attention_block(reader: BlockReader, config: DecoderConfig, prefix: str, layer: int) -> Block:
    """Read an attention layer of this decoder, or one like them."""
    return reader.block(
        prefix,
        layer,
        qk_norm=config.qk_norm,
        qkv_bias=config.qkv_bias,
        output_bias=config.output_bias,
        mlp_bias=config.mlp_bias,
        gated_heads=config.num_heads if config.gated else 0,
    )
