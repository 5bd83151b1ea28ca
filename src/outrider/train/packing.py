"""Documents into rows of one length, with little room left over. Numbers only: knows no tokens and no torch."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

OPEN = 64  # rows that wait for a document that fits; more find better fits and cost more looking


def pack(lengths: Sequence[int], order: Iterable[int], row_length: int) -> list[list[int]]:
    """Put documents into rows, each into the fullest waiting row that has room.

    Args:
        lengths: of all documents, each at most ``row_length``.
        order: the documents to place, in this order.
        row_length: tokens of a row.

    Returns:
        The documents of each row.
    """
    rows: list[list[int]] = []
    waiting: list[tuple[int, int]] = []  # room left, row; ascending
    for document in order:
        length = int(lengths[document])
        found = bisect_left(waiting, (length, -1))
        if found < len(waiting):
            room, row = waiting.pop(found)
        else:
            room, row = row_length, len(rows)
            rows.append([])
        rows[row].append(document)
        insort(waiting, (room - length, row))
        if len(waiting) > OPEN:
            waiting.pop(0)
    return rows
