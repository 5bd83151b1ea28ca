"""From scores to probabilities: constants, and how each was found (docs/doctor.md, "Calibration")."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from math import exp

from outrider.doctor.rules.signal import Signal

REPEAT = 0.45
"""What the second signal of a kind counts beside the first, the third beside the second. Set by hand: signals of one
kind come from one sentence or one number."""
TEMPERATURE = 0.43
"""Of the softmax over scores. The log loss of 136 labelled reports (62 public, 74 invented) is flat at its least from
0.40 to 0.45; the middle is taken, as reports that no rule was written for are named less surely. Below 1, as the
weights of single signals were judged with care."""
SURE = 0.93
"""Highest confidence without proof: reports hold causes that nobody thought of."""
PROVEN = 0.97


def total(signals: Iterable[Signal]) -> float:
    """Sum of log likelihood ratios; of a kind and direction the strongest counts whole, the next ones less and less."""
    parts = sorted(signals, key=lambda s: (s.kind, s.weight > 0, -abs(s.weight)))
    return sum(
        signal.weight * REPEAT**place
        for _, group in groupby(parts, key=lambda s: (s.kind, s.weight > 0))
        for place, signal in enumerate(group)
    )


def probabilities(scores: Mapping[str, float]) -> dict[str, float]:
    """Softmax at the fitted temperature."""
    top = max(scores.values())
    powers = {key: exp((score - top) / TEMPERATURE) for key, score in scores.items()}
    whole = sum(powers.values())
    return {key: power / whole for key, power in powers.items()}


def doubt(chance: float) -> float:
    """The chance before it was sharpened, up to a constant: what to measure next is asked as if less were known."""
    return float(chance**TEMPERATURE)
