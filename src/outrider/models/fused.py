"""Layers computed by fused kernels: few launches, each bound by what it reads.

What kernels do not take (sinks, masks that no tree gives, trees above 64 nodes, texts known whole) goes the plain way.
Shape letters: B batch rows, N nodes, H hidden.
"""

from dataclasses import replace

from torch import Tensor

from outrider.engine.cache import Cache
from outrider.engine.tree import DraftTree
from outrider.kernels import delta_tree as kernel
from outrider.kernels.add_norm import add_norm
from outrider.kernels.head_inputs import HeadShape, head_inputs
from outrider.kernels.tree_attention import attention
from outrider.models.computing import Computing
from outrider.models.config import DeltaSizes
from outrider.models.gdn import DeltaBlock, JointTape, Lineage
from outrider.models.layers import Block, HasMlp, Pass, Sizes, node_columns
from outrider.models.linear import SkinnyLinear
from outrider.models.masks import Visible


class Fused(Computing):
    """By Triton kernels, in float32 and half precision."""

    def __init__(self) -> None:
        self._chains: dict[tuple[int, int], tuple[Tensor, Lineage]] = {}

    def columns(self, width: int, lengths_B: Tensor, span: int | None) -> Tensor | slice:  # noqa: ARG002
        """On the device, whatever the host knows."""
        return node_columns(width, lengths_B, None)

    def add_norm(self, hidden: Tensor, update: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        """Sum and its norm in one launch."""
        return add_norm(hidden.contiguous(), update, weight, eps)

    def attend(self, normed: Tensor, block: Block, sizes: Sizes, shared: Pass, visible: Visible) -> Tensor:
        """Attention between its projections: norm, rotation and cache write; mixing; merging and gate."""
        if visible.sight is None or shared.mix is not None or block.sinks is not None:
            return super().attend(normed, block, sizes, shared, visible)
        assert isinstance(shared.columns, Tensor)  # noqa: S101 -- of our own making
        batch = shared.rows.stop - shared.rows.start
        vectors = normed.reshape(-1, normed.shape[-1])
        projected_BNX = block.qkv(vectors).view(batch, len(vectors) // batch, -1)
        norms = None
        if block.query_norm is not None and block.key_norm is not None:
            norms = (block.query_norm, block.key_norm)
        key_BGMD, value_BGMD = shared.cache.read(block.layer, shared.rows, slice(0, None))
        query_BNAD = head_inputs(
            projected_BNX,
            HeadShape(sizes.queries, sizes.keys, sizes.head),
            norms,
            (shared.cos, shared.sin),
            shared.columns,
            (key_BGMD, value_BGMD),
            sizes.eps,
        )
        ungated = (sizes.queries + 2 * sizes.keys) * sizes.head
        gate_BNX = projected_BNX[..., ungated:] if projected_BNX.shape[-1] > ungated else None
        mixed_BNX = attention(query_BNAD, key_BGMD, value_BGMD, visible.sight, window=visible.window, gate_BNX=gate_BNX)
        return block.output(mixed_BNX.view(len(vectors), -1)).view(normed.shape)

    def keep(self, vectors_BNX: Tensor, block: Block, sizes: Sizes, shared: Pass) -> None:
        """Norm, rotation and cache write in one launch."""
        assert isinstance(shared.columns, Tensor)  # noqa: S101 -- of our own making
        norms = None if block.key_norm is None else (block.key_norm, block.key_norm)
        cache = shared.cache.read(block.layer, shared.rows, slice(0, None))
        shape = HeadShape(0, sizes.keys, sizes.head)
        head_inputs(vectors_BNX, shape, norms, (shared.cos, shared.sin), shared.columns, cache, sizes.eps)

    def mlp(self, normed: Tensor, block: HasMlp) -> Tensor:
        """Gate and up in one product that ends with their gated result; down."""
        rows = normed.reshape(-1, normed.shape[-1])
        if isinstance(block.gate_up, SkinnyLinear) and block.gate_up.can_gate(len(rows)):
            return block.down(block.gate_up.gated(rows)).view(normed.shape)
        return super().mlp(normed, block)

    def lineage(self, tree: DraftTree, sizes: DeltaSizes, cache: Cache, batch: slice) -> Lineage:
        """Prepare a tape of all layers, which takes what they write and commits it in one launch."""
        lineage = self._lineage(tree, sizes, cache, batch)
        if tree.kept or tree.width > kernel.MOST_NODES or cache.states is None:
            return lineage
        shape = kernel.DeltaShape(*_shape(sizes))
        _, stored_LSXC = cache.states.stacked
        rows, layers = batch.stop - batch.start, len(cache.states.layers)
        tape = JointTape(shape, kernel.LayersTape.new(shape, layers, rows, tree.width, stored_LSXC))
        cache.states.leave_joint(tape)
        return replace(lineage, tape=tape)

    def _lineage(self, tree: DraftTree, sizes: DeltaSizes, cache: Cache, batch: slice) -> Lineage:
        """Chains of one shape come round after round: what they share is made once."""
        if not tree.is_chain or tree.kept:
            return super().lineage(tree, sizes, cache, batch)
        key = (batch.stop - batch.start, tree.width)
        known = self._chains.get(key)
        if known is None or known[0] is not tree.parents_BN:
            known = self._chains[key] = (tree.parents_BN, super().lineage(tree, sizes, cache, batch))
        return known[1]

    def delta(  # noqa: PLR0917 -- as ``gdn.delta``
        self,
        normed_BNH: Tensor,
        block: DeltaBlock,
        sizes: DeltaSizes,
        eps: float,
        rows: slice,
        cache: Cache,
        lineage: Lineage,
    ) -> Tensor:
        """Everything between the projections in one launch."""
        if lineage.tape is None or cache.states is None:
            return super().delta(normed_BNH, block, sizes, eps, rows, cache, lineage)
        vectors = normed_BNH.reshape(-1, normed_BNH.shape[-1])
        out_BNX = kernel.delta_tree(
            block.inputs(vectors).view(*normed_BNH.shape[:2], -1),
            lineage.tape.shape,
            kernel.DeltaWeights(block.convolution, block.decay_rate, block.decay_bias, block.head_norm),
            kernel.Committed(*cache.states.read(block.layer, rows)),
            kernel.Descent(lineage.sees_BNN, lineage.slots_BNW),
            lineage.tape.rule,
            cache.states.layers.index(block.layer),
            eps,
        )
        return block.output(out_BNX.view(len(vectors), -1)).view(normed_BNH.shape)


def _shape(sizes: DeltaSizes) -> tuple[int, int, int, int, int]:
    return sizes.key_heads, sizes.value_heads, sizes.key_size, sizes.value_size, sizes.convolution
