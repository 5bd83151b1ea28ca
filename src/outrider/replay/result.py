"""What a replay found: at every anchor, which of its guesses the text bears out. Free of torch.

Real greedy decoding starts a round at the first anchor and the next one behind the bonus token, so where all anchors
were replayed its rounds follow without decoding.
Shape letters: A anchors, K slots that predict.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from outrider.acceptance import Acceptance, Round
from outrider.errors import UsageError


@dataclass(frozen=True)
class ReplayedText:
    """One text.

    Attributes:
        first: position of its first anchor.
        length: tokens of the text.
        limit: tokens that it would have grown to, had nothing ended it.
        positions_A: of the anchors that were replayed, in order.
        right_AK: whether a slot's best word, those before it being right, is the text's; False beyond its end.
        log_probs_AK: log-probability of the text's word; NaN beyond its end.
    """

    first: int
    length: int
    limit: int
    positions_A: NDArray[np.int64]
    right_AK: NDArray[np.bool_]
    log_probs_AK: NDArray[np.float64]

    @cached_property
    def accepted_A(self) -> NDArray[np.int64]:  # noqa: N802 -- names an array by its shape
        """Guesses that the text bears out, up to the first wrong one."""
        accepted_A: NDArray[np.int64] = np.logical_and.accumulate(self.right_AK, 1).sum(1)
        return accepted_A

    def rounds(self, draft_tokens: int | None = None) -> tuple[Round, ...]:
        """Return the rounds of greedy decoding with chains of a fixed length.

        Args:
            draft_tokens: of a round; None for all that a block gives.

        Raises:
            UsageError: not all anchors were replayed.
        """
        if len(self.positions_A) != self.length - 1 - self.first:
            raise UsageError("The rounds of a text follow from the replay of all its anchors, not of a sample.")
        most = min(draft_tokens or self.right_AK.shape[1], self.right_AK.shape[1])
        accepted, at, found = self.accepted_A.tolist(), self.first, []
        while at < self.length - 1:
            drafted = min(most, self.limit - at - 2)  # the bonus token needs room too
            kept = min(accepted[at - self.first], drafted)
            found.append(Round(drafted=drafted, depth=drafted, accepted=kept))
            at += kept + 1
        return tuple(found)


@dataclass(frozen=True)
class Replay:
    """All texts of a recording."""

    texts: tuple[ReplayedText, ...]

    @property
    def num_anchors(self) -> int:
        """Anchors replayed."""
        return sum(len(text.positions_A) for text in self.texts)

    @cached_property
    def log_probs_AK(self) -> NDArray[np.float64]:  # noqa: N802 -- names an array by its shape
        """Log-probability of the right word, all texts; NaN beyond the end of a text."""
        return np.concatenate([text.log_probs_AK for text in self.texts])

    @property
    def log_prob(self) -> float:
        """Mean log-probability of the right words, over all anchors and slots."""
        return float(np.nanmean(self.log_probs_AK))

    @property
    def length_at_anchors(self) -> float:
        """1 + mean accepted over the anchors: tau if a round were as likely to start at any of them.

        Real rounds start where the one before ended, which is where guessing is hard: tau itself is somewhat lower.
        """
        return 1 + float(np.concatenate([text.accepted_A for text in self.texts]).mean())

    @property
    def slot_rates(self) -> tuple[float, ...]:
        """Share of right words in each slot, those before it being given: not position rates, which are cumulative."""
        known_AK = ~np.isnan(self.log_probs_AK)
        right_AK = np.concatenate([text.right_AK for text in self.texts])
        counts_K = known_AK.sum(0)
        return tuple(float(r / n) for r, n in zip((right_AK & known_AK).sum(0), counts_K, strict=True) if n)

    def acceptance(self, draft_tokens: int | None = None) -> Acceptance:
        """Return the rounds of greedy decoding, text by text (see ``ReplayedText.rounds``)."""
        return Acceptance.from_sequences(text.rounds(draft_tokens) for text in self.texts)
