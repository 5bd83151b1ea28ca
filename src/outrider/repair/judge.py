"""How good a reading of a drafter is: replays of samples of anchors, each measured once and remembered.

A slot's gain is the log-probability of the right word above what the word's frequency alone would give it. It is
smooth where acceptance is still 1, and it tells slots that know something from slots that do not.
Shape letters: A anchors, K slots that predict, T tokens, R resamples.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.acceptance import Interval, ratio_interval, resampled_sums
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.network import DFlash
from outrider.repair.readings import BLOCK_SIZES
from outrider.replay import RecordedText, Recording, replay

SAMPLES = (8, 32, 192)  # anchors of the first look, of the choice, and of the proof
STRETCH = 16  # tokens: anchors within so many share most of what they guess, and are resampled together
CONFIDENCE = 0.99  # of an interval that makes a key count as measured; there are dozens of comparisons
RESAMPLES = 4000
LED, CLIFF = 3, 0.4  # a slot that gains less than this share of what the three before it gain lies behind the block
PRICE = 0.02  # nats that a slot must gain: of sizes that gain the same the smallest is taken

Gains = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Score:
    """One reading on one sample.

    Attributes:
        gains_AK: of each slot at each anchor, in nats; 0 beyond the end of a text.
        log_prob: mean log-probability of the right words over anchors and slots.
        length: 1 + mean accepted over the anchors.
    """

    gains_AK: Gains
    log_prob: float
    length: float


def worth(gains_XK: Gains, slots: int | None) -> Gains:
    """What mean gains say of a reading: their mean over the first slots, or what whole blocks gain.

    Args:
        gains_XK: mean over anchors, for each of any number of samples.
        slots: so many; None for whole blocks, so that block sizes can be compared.
    """
    worth_X: Gains = _whole(gains_XK) if slots is None else gains_XK[..., :slots].mean(-1)
    return worth_X


def _whole(gains_XK: Gains) -> Gains:
    """Sum what slots gain above their price, up to where they suddenly gain little: behind the block it was trained on.

    In a drafter's own block gains sink slowly from slot to slot.
    """
    slots = gains_XK.shape[-1]
    used_XK = np.ones_like(gains_XK, dtype=np.bool_)
    for slot in range(LED, slots):
        before_X, here_X = gains_XK[..., slot - LED : slot].mean(-1), gains_XK[..., slot : slot + 2].mean(-1)
        used_XK[..., slot] = used_XK[..., slot - 1] & (here_X > CLIFF * before_X)
    total_X: Gains = (gains_XK.clip(min=0) * used_XK).sum(-1) - PRICE * slots
    return total_X


class Judge:
    """Scores readings on a recording.

    Args:
        network: the drafter's weights, in whatever reading.
        recording: texts of its target.

    Attributes:
        network, recording: as given.
        num_readings: replays made.
        num_blocks: blocks drafted in them.
    """

    def __init__(self, network: DFlash, recording: Recording) -> None:
        self.network, self.recording = network, recording
        self._samples = [sample(recording, size) for size in SAMPLES]
        self._usual = Frequencies(recording.texts, network.target_vocab)
        self._known: dict[tuple[str, int], Score] = {}
        self.num_readings = self.num_blocks = 0

    @property
    def num_anchors(self) -> int:
        """Anchors of the largest sample."""
        return sum(map(len, self._samples[-1]))

    def score(self, config: DFlashConfig, level: int = -1) -> Score:
        """Score a reading on the sample of a level, 0 the smallest."""
        key = (repr(config), level % len(SAMPLES))
        if key not in self._known:
            self._known[key] = self._measure(config, self._samples[level])
        return self._known[key]

    def _measure(self, config: DFlashConfig, anchors: Sequence[Sequence[int]]) -> Score:
        found = replay(self.network.variant(config), self.recording, anchors)
        self.num_readings += 1
        self.num_blocks += found.num_anchors
        usual_AK = np.concatenate(self._usual.of(anchors, config.max_tokens))
        return Score(np.nan_to_num(found.log_probs_AK - usual_AK), found.log_prob, found.length_at_anchors)

    def worth(self, config: DFlashConfig, slots: int | None, level: int) -> float:
        """Say how good a reading is (see the function ``worth``)."""
        return float(worth(self.score(config, level).gains_AK.mean(0), slots))

    def difference(self, one: DFlashConfig, other: DFlashConfig, slots: int | None) -> Interval:
        """By how much the first reading is worth more, on the largest sample; paired bootstrap of stretches of text.

        Slots in which a reading knows less than frequencies count as if it knew those: of two wrong guesses the less
        wrong one proves nothing.
        """
        gains_AK, others_AK = self.score(one).gains_AK, self.score(other).gains_AK
        both_AK = np.concatenate((gains_AK, others_AK, np.ones((len(gains_AK), 1))), 1)
        rows = [both_AK[stretch_A].sum(0).tolist() for stretch_A in self._stretches()]
        sums_RK = resampled_sums(rows, RESAMPLES, seed=0)
        wide = gains_AK.shape[1]

        def differ(sums_XK: Gains) -> Gains:
            means_XK = sums_XK[:, :-1] / sums_XK[:, -1:]
            least = -np.inf if slots is None else 0.0
            ours_XK, theirs_XK = (means_XK[:, part].clip(least, None) for part in (slice(wide), slice(wide, None)))
            return worth(ours_XK, slots) - worth(theirs_XK, slots)

        value = float(differ(both_AK.sum(0, keepdims=True))[0])
        return ratio_interval(differ(sums_RK), np.ones(len(sums_RK)), CONFIDENCE, value)

    def _stretches(self) -> list[NDArray[np.bool_]]:
        """Of each stretch of text which anchors of the largest sample lie in it."""
        names = [(text, at // STRETCH) for text, some in enumerate(self._samples[-1]) for at in some]
        return [np.array([name == stretch for name in names]) for stretch in dict.fromkeys(names)]


def sample(recording: Recording, size: int) -> list[list[int]]:
    """Return up to ``size`` anchors spread evenly over all texts, of those whose longest block fits if they suffice."""
    reach = max(BLOCK_SIZES)
    whole = [(i, at) for i, some in enumerate(recording.anchors) for at in some[: max(0, len(some) - reach)]]
    places = whole if len(whole) >= size else [(i, at) for i, some in enumerate(recording.anchors) for at in some]
    step = max(1.0, len(places) / size)
    chosen = {places[int(step * index)] for index in range(min(size, len(places)))}
    return [sorted(at for text, at in chosen if text == index) for index in range(len(recording.texts))]


class Frequencies:
    """Log-probability of each written token by how often it occurs elsewhere in the texts.

    The token itself is left out of the count; unseen words share the weight of the number of different ones
    (Witten and Bell 1991).
    """

    def __init__(self, texts: Sequence[RecordedText], vocab: int) -> None:
        written = [text.tokens_T[text.first + 1 :].tolist() for text in texts]
        counts = Counter(token for tokens in written for token in tokens)
        kinds, others = len(counts), counts.total() - 1
        self._texts = [
            (text.first, np.log(np.array([counts[token] - 1 + kinds / vocab for token in tokens]) / (others + kinds)))
            for text, tokens in zip(texts, written, strict=True)
        ]

    def of(self, anchors: Sequence[Sequence[int]], slots: int) -> list[Gains]:
        """Return those of the tokens behind each anchor, [A, K] a text; NaN beyond its end."""
        found = []
        for (first, logs_T), positions in zip(self._texts, anchors, strict=True):
            padded_T = np.concatenate((logs_T, np.full(slots, np.nan)))
            at_AK = np.array(positions, dtype=np.int64)[:, None] - first + np.arange(slots)
            found.append(padded_T[at_AK])
        return found
