"""What is kept of committed tokens, one slot a sequence, static shapes: keys and values, and states of other layers.

Behind a slot's committed rows the nodes of the running pass leave theirs; a commit moves the walked path's rows
to the front of that region, and advances the states of recurrent layers along it. Lengths are kept by the engine,
not here.

Shape letters: L layers with keys, S slots, G key/value heads, M rows, D head size, B batch rows, N nodes, P path.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from outrider.engine.recurrent import RecurrentStates


class Cache:
    """Room for ``slots`` sequences of ``rows`` keys and values in each layer that has some.

    Attributes:
        rows: of a slot.
        layers: numbers of the layers with keys and values.
        states: of the recurrent layers, or None where there are none.
    """

    def __init__(
        self,
        *,
        layers: Sequence[int],
        slots: int,
        rows: int,
        heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        states: RecurrentStates | None = None,
    ) -> None:
        shape = (len(layers), 2, slots, heads, rows, head_dim)
        self.rows, self.layers, self.states = rows, tuple(layers), states
        self._place = {layer: place for place, layer in enumerate(layers)}
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
        place = self._place[layer]
        if isinstance(columns, slice):
            self._kv_L2SGMD[place, 0, rows, :, columns] = key_BGND
            self._kv_L2SGMD[place, 1, rows, :, columns] = value_BGND
            return
        slots_B1 = torch.arange(rows.start, rows.stop, device=columns.device)[:, None]
        # An index on both sides of a slice puts the indexed axes first: [B, N, G, D].
        self._kv_L2SGMD[place, 0][slots_B1, :, columns] = key_BGND.transpose(1, 2)
        self._kv_L2SGMD[place, 1][slots_B1, :, columns] = value_BGND.transpose(1, 2)

    def read(self, layer: int, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """Keys and values [B, G, columns, D] of the batch's slots, as views."""
        key_value = self._kv_L2SGMD[self._place[layer], :, rows, :, columns]
        return key_value[0], key_value[1]

    @property
    def shares(self) -> bool:
        """Whether the beginning of one sequence can be given to another: a recurrent state stands for all of it."""
        return self.states is None

    def share(self, source: int, slot: int, count: int) -> None:
        """Give a slot the first ``count`` rows of another."""
        if source != slot:
            self._kv_L2SGMD[:, :, slot, :, :count] = self._kv_L2SGMD[:, :, source, :, :count]

    def clear(self, slots: slice | Tensor) -> None:
        """New sequences start in the slots: forget what the old ones left, where lengths alone do not say so."""
        if self.states is not None:
            self.states.clear(slots)

    def fill_randomly(self) -> None:
        """Make up what is committed, for measurements: zeros would be faster than what is met."""
        self._kv_L2SGMD.normal_()
        if self.states is not None:
            for stack in self.states.stacked:
                stack.normal_()

    def commit(
        self, rows: slice, lengths_B: Tensor, path_BP: Tensor, counts_B: Tensor, *, in_place: bool = False
    ) -> None:
        """Make the walked paths part of the sequences.

        Args:
            rows: the slots of the last pass.
            lengths_B: committed tokens of each, before.
            path_BP: nodes from the root down.
            counts_B: nodes of each path that count; 0 for a row to pass over.
            in_place: known on the host: each path is the first nodes, whose rows lie where they belong.
        """
        if not in_place:
            self._move(rows, lengths_B, path_BP)
        if self.states is not None:
            self.states.commit(rows, path_BP, counts_B)

    def _move(self, rows: slice, lengths_B: Tensor, path_BP: Tensor) -> None:
        """Move the path's rows to ``lengths, lengths + 1, ...``; all are read before any is written."""
        slots_B1 = torch.arange(rows.start, rows.stop, device=lengths_B.device)[:, None]
        source_BP = lengths_B[:, None] + path_BP
        target_BP = lengths_B[:, None] + torch.arange(path_BP.shape[1], device=lengths_B.device)
        moved = self._kv_L2SGMD[:, :, slots_B1, :, source_BP]
        self._kv_L2SGMD[:, :, slots_B1, :, target_BP] = moved

    def take(self, slots_P: Tensor, beside: "Cache", columns: slice) -> None:
        """Copy the first slots of ``beside`` into scattered ones: these columns, and the states."""
        everywhere, rows = slice(0, None), slice(0, len(slots_P))
        for layer in self.layers:
            pairs = zip(self.read(layer, everywhere, columns), beside.read(layer, rows, columns), strict=True)
            for target_BGSD, source_PGSD in pairs:
                target_BGSD[slots_P] = source_PGSD
        if self.states is not None and beside.states is not None:
            self.states.take(slots_P, beside.states)
