"""Which samples are trained on, which are held out, and how much of each is read. Free of torch.

Held out are prompts, with all that was ever written after them, so that nothing measured was learnt by heart. A prompt
is held out by its own hash: in whatever data it turns up again, it stays held out.
Shape letters: M samples, D documents (samples that are read), P prompts, T tokens.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outrider.errors import UsageError

Integers = NDArray[np.int64]
FEWEST_PROMPTS = 8  # held out where the share gives fewer, if that leaves at least as many others


class Samples(Protocol):
    """Prompts and what the target wrote after them."""

    @property
    def lengths_M(self) -> NDArray[Any]:  # noqa: N802 -- names an array by its shape
        """Tokens of each sample."""
        ...

    @property
    def responses_M(self) -> NDArray[Any]:  # noqa: N802 -- names an array by its shape
        """Index of each sample's first response token."""
        ...

    def tokens(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of one, prompt and response."""
        ...


@dataclass(frozen=True, slots=True)
class Documents:
    """Samples as they are read.

    Attributes:
        samples: all of them.
        chosen_D: which ones.
        lengths_D: tokens that are read of each.
        first_D: where each response begins.
    """

    samples: Samples
    chosen_D: Integers
    lengths_D: Integers
    first_D: Integers

    def __len__(self) -> int:
        return len(self.chosen_D)

    def tokens(self, document: int) -> NDArray[np.int32]:
        """Return what is read of one."""
        return self.samples.tokens(int(self.chosen_D[document]))[: self.lengths_D[document]]

    def prompt(self, document: int) -> tuple[int, ...]:
        """Return its prompt."""
        return tuple(self.tokens(document)[: self.first_D[document]].tolist())

    @property
    def response_tokens(self) -> int:
        """Tokens of all responses, as far as they are read."""
        return int((self.lengths_D - self.first_D).sum())

    def fingerprint(self) -> str:
        """Return a hash that other data would not have."""
        digest = blake2b(digest_size=16)
        for numbers in (self.chosen_D, self.lengths_D, self.first_D):
            digest.update(np.ascontiguousarray(numbers).tobytes())
        for document in range(0, len(self), max(1, len(self) // 64)):
            digest.update(np.ascontiguousarray(self.tokens(document)).tobytes())
        return digest.hexdigest()

    def _some(self, kept_D: NDArray[np.bool_]) -> "Documents":
        return Documents(self.samples, self.chosen_D[kept_D], self.lengths_D[kept_D], self.first_D[kept_D])


@dataclass(frozen=True, slots=True)
class Split:
    """Documents to train on, and those held out.

    Attributes:
        cut_tokens: tokens of samples that were longer than a row.
        unused: samples without a response within a row.
    """

    train: Documents
    held_out: Documents
    cut_tokens: int
    unused: int


def split(samples: Samples, *, share: float, row_length: int, where: str) -> Split:
    """Choose what is read.

    Args:
        samples: all there are.
        share: of the prompts that are held out.
        row_length: tokens that are read of a sample at most.
        where: the data's place, for messages.

    Raises:
        UsageError: nothing is left to train on, or nothing to hold out.
    """
    whole_M, first_M = samples.lengths_M.astype(np.int64), samples.responses_M.astype(np.int64)
    lengths_M = np.minimum(whole_M, row_length)
    # An anchor stands before the first token to guess; a response that starts the text has none for its first token.
    usable_M = lengths_M > np.maximum(first_M, 1)
    everything = Documents(samples, np.flatnonzero(usable_M), lengths_M[usable_M], first_M[usable_M])
    if not len(everything):
        raise UsageError(
            f"{where} holds {len(whole_M)} samples and none has a response within its first {row_length} tokens: there "
            "is nothing to train on; write data with outrider train data, or take longer rows."
        )
    out_D = _held_out(everything, share)
    if out_D.all() or not out_D.any():
        raise UsageError(
            f"{where} holds {len(everything)} usable samples of one prompt: nothing would be left beside those held "
            "out; give data of at least two prompts."
        )
    return Split(
        everything._some(~out_D),  # noqa: SLF001 -- one of this module's own
        everything._some(out_D),  # noqa: SLF001 -- one of this module's own
        int((whole_M - lengths_M)[usable_M].sum()),
        int((~usable_M).sum()),
    )


def _held_out(documents: Documents, share: float) -> NDArray[np.bool_]:
    """Say which documents have a prompt whose hash is among the lowest."""
    prompts = (documents.tokens(index)[: documents.first_D[index]] for index in range(len(documents)))
    hashes_D = np.fromiter(map(_hash, prompts), np.uint64, len(documents))
    prompts_P = np.unique(hashes_D)  # ascending
    below = int((prompts_P < np.uint64(min(share, 1.0) * (2**64 - 1))).sum())
    fewest = min(FEWEST_PROMPTS, len(prompts_P) // 2)
    return np.isin(hashes_D, prompts_P[: max(below, fewest)])


def _hash(prompt_T: NDArray[np.int32]) -> int:
    return int.from_bytes(blake2b(prompt_T.astype("<i4").tobytes(), digest_size=8).digest(), "little")
