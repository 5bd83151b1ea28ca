"""How products were best cut where that was measured: a table by size, for the device it was measured on.

Written by ``python -m benchmarks.gpu_session``. Sizes that no table has are cut by ``skinny.plan``.
"""

import json
from pathlib import Path
from typing import NamedTuple

from outrider.errors import UsageError


class Size(NamedTuple):
    """What a cut depends on.

    Attributes:
        outputs: of the result.
        inputs: of a row.
        tokens: rounded up to a tile.
        gated: whether two matrices make one result.
        narrow: whether weights take one byte.
    """

    outputs: int
    inputs: int
    tokens: int
    gated: bool
    narrow: bool


Cut = tuple[int, int, int, int, int]  # the fields of ``skinny.Plan``
measured: dict[Size, Cut] = {}


def use(path: Path) -> None:
    """Cut products as a file says.

    Raises:
        UsageError: it holds no such table.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["plans"]
        measured.update({Size(*row["size"]): tuple(row["cut"]) for row in rows})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} holds no table of cuts ({type(error).__name__}: {error}).") from error
