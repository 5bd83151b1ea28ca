"""Samples in memory, and batches of them, for tests that need no files."""

from collections.abc import Sequence

import numpy as np

from outrider.train.batches import Batch, Reader
from outrider.train.documents import Documents


class MemorySamples:
    """What ``read_samples`` gives, from lists."""

    def __init__(self, texts: Sequence[Sequence[int]], responses: Sequence[int]) -> None:
        self._texts = [np.asarray(text, dtype=np.int32) for text in texts]
        self.lengths_M = np.array([len(text) for text in self._texts], dtype=np.int64)
        self.responses_M = np.array(responses, dtype=np.int32)

    def tokens(self, index: int) -> np.ndarray:
        return self._texts[index]


def documents_of(texts: Sequence[Sequence[int]], responses: Sequence[int]) -> Documents:
    """All of the texts, whole."""
    samples = MemorySamples(texts, responses)
    return Documents(samples, np.arange(len(texts)), samples.lengths_M, samples.responses_M.astype(np.int64))


def reader_of(documents: Documents, **settings) -> Reader:
    given = {"rows": 2, "row_length": 48, "anchors": 6, "block_size": 8, "seed": 0} | settings
    return Reader(documents, **given)


def batch_of(texts: Sequence[Sequence[int]], responses: Sequence[int], **settings) -> Batch:
    """The first batch of the texts."""
    rows = settings.get("rows", 2)
    return reader_of(documents_of(texts, responses), **settings).read(0, 0, slice(0, rows))
