"""Packed rows of documents and the anchors in them, anew for every epoch.

What a step reads follows from seed, epoch and step alone, so a run that was stopped goes on with the same batches, and
several processes read what one would, shared out among them.
Shape letters: B rows of a batch, T tokens of a row, A anchors of a row, D documents of a batch, P blocks, the anchors
that there are.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from outrider.train.documents import Documents
from outrider.train.packing import pack

Integers = NDArray[np.int64]
NOTHING = -1
# Chooses among the places where an anchor may stand: how far each is from its document's first such place, how many
# are wanted, and as many numbers from 0 to 1; returns indices, ascending.
DrawAnchors = Callable[[Integers, int, NDArray[np.float64]], Integers]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of documents one after the other.

    Attributes:
        tokens_BT: ids; anything where there is no document.
        document_BT: number of the document within the batch, -1 behind the last one of a row.
        position_BT: of the token in its document.
        response_BT: whether the target wrote it.
        anchors_BA: columns of the row's anchors, -1 behind the last.
        blocks_P: which of all places for anchors hold one, counted through.
        facts: on the host: what the log says of it.
    """

    tokens_BT: Tensor
    document_BT: Tensor
    position_BT: Tensor
    response_BT: Tensor
    anchors_BA: Tensor
    blocks_P: Tensor
    facts: "Facts"

    def to(self, device: torch.device) -> "Batch":
        """Return it on a device; the host does not wait for the copy."""
        if device.type == "cpu":
            return self
        moved: dict[str, Any] = {
            one.name: getattr(self, one.name).pin_memory().to(device, non_blocking=True)
            for one in fields(self)
            if one.name != "facts"
        }
        return replace(self, **moved)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the log counts of a batch.

    Attributes:
        responses: response tokens.
        phases_N: anchors by distance from the document's first possible one, modulo the size of a block.
        long: documents whose response is at least as long as a block.
        starved: those of them without an anchor.
    """

    responses: int
    phases_N: Integers
    long: int
    starved: int


def stratified(offsets_P: Integers, count: int, uniforms_A: NDArray[np.float64]) -> Integers:
    """Draw one place from each of ``count`` equal strata: no document goes without its share, no grid is fixed."""
    places = len(offsets_P)
    if places <= count:
        return np.arange(places, dtype=np.int64)
    bounds = np.arange(count + 1, dtype=np.int64) * places // count
    widths = np.diff(bounds)
    chosen: Integers = bounds[:-1] + np.minimum((uniforms_A * widths).astype(np.int64), widths - 1)
    return chosen


class Reader:
    """Gives the batches of a run.

    Args:
        documents: to read.
        rows: of one step, all processes and accumulated batches together.
        row_length: tokens of a row.
        anchors: of a row.
        block_size: slots of a block, for the log.
        seed: of order and anchors.
        draw: chooses anchors.
    """

    def __init__(
        self,
        documents: Documents,
        *,
        rows: int,
        row_length: int,
        anchors: int,
        block_size: int,
        seed: int,
        draw: DrawAnchors = stratified,
    ) -> None:
        self._documents, self._draw = documents, draw
        self._rows, self._row_length, self._anchors, self._block_size = rows, row_length, anchors, block_size
        self._seed = seed
        self._planned, self._plan = NOTHING, [[0]]

    def steps(self, epoch: int) -> int:
        """Return how many steps an epoch has; rows that fill no step are left to other epochs."""
        return max(1, len(self._rows_of(epoch)) // self._rows)

    def _rows_of(self, epoch: int) -> list[list[int]]:
        if epoch != self._planned:
            shuffle = np.random.default_rng([self._seed, epoch])
            order = shuffle.permutation(len(self._documents)).tolist()
            rows = pack(self._documents.lengths_D.tolist(), order, self._row_length)
            self._plan = [rows[index] for index in shuffle.permutation(len(rows))]
            self._planned = epoch
        return self._plan

    def read(self, epoch: int, step: int, part: slice) -> Batch:
        """Return some of a step's rows.

        Args:
            epoch: from 0.
            step: within the epoch.
            part: which of the step's rows.
        """
        start = step * self._rows
        rows = self._rows_of(epoch)[start + part.start : min(start + part.stop, start + self._rows)]
        uniforms = np.random.default_rng([self._seed, epoch, step]).random((self._rows, self._anchors))
        return self._build(rows, uniforms[part], part.stop - part.start)

    def _build(self, rows: list[list[int]], uniforms_BA: NDArray[np.float64], height: int) -> Batch:
        """Lay documents out; rows that the epoch lacks stay empty."""
        shape = (height, self._row_length)
        tokens, position = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        document, offset = np.full(shape, NOTHING, np.int64), np.full(shape, NOTHING, np.int64)
        number = 0
        for row, members in enumerate(rows):
            column = 0
            for member in members:
                length, first = int(self._documents.lengths_D[member]), int(self._documents.first_D[member])
                place = (row, slice(column, column + length))
                tokens[place], document[place] = self._documents.tokens(member), number
                position[place] = np.arange(length)
                offset[place] = position[place] - max(first - 1, 0)
                number, column = number + 1, column + length
        response = (offset > 0) & (document >= 0)
        anchors = self._anchors_of(document, offset, response, uniforms_BA)
        return Batch(
            tokens_BT=torch.from_numpy(tokens),
            document_BT=torch.from_numpy(document),
            position_BT=torch.from_numpy(position),
            response_BT=torch.from_numpy(response),
            anchors_BA=torch.from_numpy(anchors),
            blocks_P=torch.from_numpy(np.flatnonzero(anchors.ravel() >= 0)),
            facts=self._facts(document, offset, anchors, number),
        )

    def _anchors_of(
        self, document: Integers, offset: Integers, response: NDArray[np.bool_], uniforms_BA: NDArray[np.float64]
    ) -> Integers:
        """Choose, in each row, among the tokens that are followed by one of the target's in the same document."""
        possible = np.zeros(document.shape, bool)
        possible[:, :-1] = response[:, 1:] & (document[:, 1:] == document[:, :-1])
        anchors = np.full((len(document), self._anchors), NOTHING, np.int64)
        for row in range(len(document)):
            places = np.flatnonzero(possible[row])
            drawn = places[self._draw(offset[row, places], self._anchors, uniforms_BA[row])]
            anchors[row, : len(drawn)] = drawn
        return anchors

    def _facts(self, document: Integers, offset: Integers, anchors: Integers, number: int) -> Facts:
        rows, _ = np.nonzero(anchors >= 0)
        columns = anchors[anchors >= 0]
        phases = np.bincount(offset[rows, columns] % self._block_size, minlength=self._block_size)
        longest = np.zeros(number, np.int64)
        np.maximum.at(longest, document[document >= 0], offset[document >= 0])
        drawn = np.bincount(document[rows, columns], minlength=number)
        long = longest >= self._block_size
        responses = int((offset[document >= 0] > 0).sum())
        return Facts(responses, phases.astype(np.int64), int(long.sum()), int((long & (drawn == 0)).sum()))
