"""How the layers of a network are computed on a device: chosen here, in one place."""

import torch
from torch import Tensor

from outrider.engine.cache import Cache
from outrider.engine.tree import DraftTree
from outrider.kernels.launch import can_run
from outrider.models.config import DeltaSizes
from outrider.models.gdn import DeltaBlock, Lineage, delta
from outrider.models.layers import Block, HasMlp, Pass, Sizes, add_norm, attend, keep, mlp, node_columns
from outrider.models.masks import Visible


class Computing:
    """In plain PyTorch: any device, any type; the yardstick for all others."""

    def columns(self, width: int, lengths_B: Tensor, span: int | None) -> Tensor | slice:
        """Where a pass leaves its rows (``layers.node_columns``)."""
        return node_columns(width, lengths_B, span)

    def add_norm(self, hidden: Tensor, update: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        """Sum and its norm (``layers.add_norm``)."""
        return add_norm(hidden, update, weight, eps)

    def attend(self, normed: Tensor, block: Block, sizes: Sizes, shared: Pass, visible: Visible) -> Tensor:
        """Attention between its projections (``layers.attend``)."""
        return attend(normed, block, sizes, shared, visible)

    def keep(self, vectors_BNX: Tensor, block: Block, sizes: Sizes, shared: Pass) -> None:
        """Leave keys and values of known vectors in the cache (``layers.keep``)."""
        keep(vectors_BNX, block, sizes, shared)

    def mlp(self, normed: Tensor, block: HasMlp) -> Tensor:
        """Gate, up, down (``layers.mlp``)."""
        return mlp(normed, block)

    def lineage(self, tree: DraftTree, sizes: DeltaSizes, cache: Cache, batch: slice) -> Lineage:  # noqa: ARG002
        """Prepare what Gated DeltaNet layers of one pass share."""
        return Lineage.of(tree, sizes)

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
        """Gated DeltaNet between its projections (``gdn.delta``)."""
        return delta(normed_BNH, block, sizes, eps, rows, cache, lineage)


def computing_on(device: torch.device, activations: torch.dtype) -> Computing:
    """Return kernels where they run and take the type, else plain PyTorch."""
    if can_run(device) and activations in {torch.float32, torch.bfloat16, torch.float16}:
        from outrider.models.fused import Fused

        return Fused()
    return Computing()
