"""Keys and values of committed tokens, one slot a sequence, static shapes.

Behind a slot's committed rows the nodes of the running pass leave theirs; a commit moves the walked path's rows
to the front of that region. Lengths are kept by the engine, not here.

Shape letters: L layers, S slots, G key/value heads, M rows, D head size, B batch rows, N nodes, P path.
"""

import torch
from torch import Tensor


class Cache:
    """Room for ``slots`` sequences of ``rows`` keys and values in every layer."""

    def __init__(
        self,
        *,
        layers: int,
        slots: int,
        rows: int,
        heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        shape = (layers, 2, slots, heads, rows, head_dim)
        self.rows = rows
        self._kv_L2SGMD = torch.zeros(shape, dtype=dtype, device=device)

    def write(self, layer: int, rows: slice, columns: Tensor | slice, key_BGND: Tensor, value_BGND: Tensor) -> None:
        """Leave the nodes' keys and values in the batch's slots.

        Args:
            layer: which layer's.
            rows: the slots.
            columns: where in each slot, [B, N]; or a slice where it is the same for all, which is cheaper.
            key_BGND: keys of the nodes.
            value_BGND: their values.
        """
        if isinstance(columns, slice):
            self._kv_L2SGMD[layer, 0, rows, :, columns] = key_BGND
            self._kv_L2SGMD[layer, 1, rows, :, columns] = value_BGND
            return
        slots_B1 = torch.arange(rows.start, rows.stop, device=columns.device)[:, None]
        # An index on both sides of a slice puts the indexed axes first: [B, N, G, D].
        self._kv_L2SGMD[layer, 0][slots_B1, :, columns] = key_BGND.transpose(1, 2)
        self._kv_L2SGMD[layer, 1][slots_B1, :, columns] = value_BGND.transpose(1, 2)

    def read(self, layer: int, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """Keys and values [B, G, columns, D] of the batch's slots, as views."""
        key_value = self._kv_L2SGMD[layer, :, rows, :, columns]
        return key_value[0], key_value[1]

    def commit(self, rows: slice, lengths_B: Tensor, path_BP: Tensor) -> None:
        """Move the path's rows to ``lengths, lengths + 1, ...``; all are read before any is written."""
        slots_B1 = torch.arange(rows.start, rows.stop, device=lengths_B.device)[:, None]
        source_BP = lengths_B[:, None] + path_BP
        target_BP = lengths_B[:, None] + torch.arange(path_BP.shape[1], device=lengths_B.device)
        moved = self._kv_L2SGMD[:, :, slots_B1, :, source_BP]
        self._kv_L2SGMD[:, :, slots_B1, :, target_BP] = moved
