"""States of recurrent layers, one a slot: what stands for all committed tokens where no key of theirs is kept.

A pass reads the states and leaves them as they are; beside them it leaves a tape, from which the state after any
node can be made. A commit plays the walked path. Lengths are kept by the engine, not here.

Shape letters: S slots, B batch rows, P path.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

States = tuple[Tensor, ...]


class Tape(Protocol):
    """What one pass left of one layer."""

    def play(self, states: States, path_BP: Tensor, counts_B: Tensor) -> States:
        """Return the states after the first ``counts`` nodes of each path; 0 leaves a row as it is.

        Args:
            states: those that the pass read, [B, ...] each.
            path_BP: nodes from the root down.
            counts_B: nodes that count.
        """
        ...


class Part(NamedTuple):
    """A tensor that each slot keeps of a layer; the shape is without the slot."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class JointTape(Protocol):
    """What one pass left of all layers together."""

    def commit(self, states: States, path_BP: Tensor, counts_B: Tensor) -> None:
        """Advance the states in place along the first ``counts`` nodes of each path; 0 leaves a row as it is.

        Args:
            states: those that the pass read, [layers, B, ...] each.
            path_BP: nodes from the root down.
            counts_B: nodes that count.
        """
        ...


class RecurrentStates:
    """Room for ``slots`` sequences in each recurrent layer; a new sequence starts from zeros.

    Args:
        layers: their numbers.
        slots: sequences at once.
        parts: what each layer keeps of a sequence.
        device: where it lives.

    Attributes:
        layers: as given; their order is that of ``stacked``.
        stacked: the states of all layers and slots, [layers, S, ...] each.
    """

    def __init__(self, layers: Sequence[int], *, slots: int, parts: Sequence[Part], device: torch.device) -> None:
        self.layers = list(layers)
        self.stacked: States = tuple(
            torch.zeros(len(layers), slots, *part.shape, dtype=part.dtype, device=device) for part in parts
        )
        self._states: dict[int, States] = {
            layer: tuple(stack[place] for stack in self.stacked) for place, layer in enumerate(layers)
        }
        self._joint: JointTape | None = None
        self._tapes: dict[int, Tape] = {}

    def read(self, layer: int, rows: slice) -> States:
        """The states of the batch's slots, as views [B, ...]."""
        return tuple(state[rows] for state in self._states[layer])

    def leave(self, layer: int, tape: Tape) -> None:
        """Keep what the pass left of a layer, until it is committed or the next pass leaves its own."""
        self._tapes[layer] = tape

    def leave_joint(self, tape: JointTape) -> None:
        """Keep what the pass leaves of all layers together, in place of tapes of single ones."""
        self._joint = tape

    def commit(self, rows: slice, path_BP: Tensor, counts_B: Tensor) -> None:
        """Play the paths on the tapes of the last pass, which read the same rows."""
        if self._joint is not None:
            self._joint.commit(tuple(stack[:, rows] for stack in self.stacked), path_BP, counts_B)
            self._joint = None
        for layer in list(self._tapes):
            before = self.read(layer, rows)
            for state, after in zip(before, self._tapes.pop(layer).play(before, path_BP, counts_B), strict=True):
                state.copy_(after)

    def clear(self, slots: slice | Tensor) -> None:
        """Forget what the slots held."""
        for states in self._states.values():
            for state in states:
                state[slots] = 0

    def take(self, slots_P: Tensor, beside: "RecurrentStates") -> None:
        """Copy the first states of ``beside`` into scattered slots."""
        for layer, states in self._states.items():
            for state, other in zip(states, beside.read(layer, slice(0, len(slots_P))), strict=True):
                state[slots_P] = other
