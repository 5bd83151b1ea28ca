"""What was answered to an item, and answers in the order of their items. Free of torch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outrider.train.work import Item


@dataclass(frozen=True, slots=True)
class Text:
    """What the target answered to an item.

    Attributes:
        tokens: its stop token included, if it ended with one.
        ended: whether it did.
        refusal: why there is no answer that can be used; empty where there is one.
    """

    item: Item
    tokens: npt.NDArray[np.int32]
    ended: bool
    refusal: str = ""


def in_order(texts: Iterable[Text], start: int = 0) -> Iterator[Text]:
    """Yield the answers by the numbers of their items, from ``start`` on, each as soon as all before it are there."""
    waiting: dict[int, Text] = {}
    expected = start
    for text in texts:
        waiting[text.item.index] = text
        while expected in waiting:
            yield waiting.pop(expected)
            expected += 1
