"""The hypothesis that nothing is wrong: a drafter that does what its kind does, and no complaint."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Mapping

from outrider.doctor.observation import Observation
from outrider.doctor.observation.contrast import Contrast

QUIET = 1.5
"""Log weight of "nothing is wrong" before anything is seen, beside the causes' priors; people write when it hurts."""
PUBLISHED: Mapping[str, tuple[float, float]] = {
    "dflash": (2.9, 9.2), "dflash2": (3.3, 7.0), "dspark": (2.9, 6.5), "ddtree": (4.0, 13.0), "mtp": (1.7, 7.1),
    "eagle3": (2.2, 5.9), "eagle": (2.0, 4.5), "draft_model": (1.8, 6.0), "ngram": (1.2, 6.0),
}  # fmt: skip
"""Acceptance lengths of sound pairs, lowest to highest published: arXiv 2602.06036 (DFlash, EAGLE-3, MTP),
2604.12989 and Luce-Org/lucebox (DDTree), 2607.05147 (DSpark), the DFlash2 notes, vLLM and llama.cpp threads (MTP)."""
_COMPLAINT = (
    r"crash|fail|hang|slow(er|s|ed)?\b|wors|collaps|wrong|garb|corrupt|falls?\b|drops?\b|below|low(er)?\b|lost|loses?\b|zero|"
    r"ignored|refus|reject|mismatch|missing|disabled|gone|bad\b|broken|never|nothing|differs?\b|regress|degrad|exceed|nan\b|"
    r"loss|less|not (work|start|support)|error|halv|shrink|sag|decay|weak|unlike|disagree|only \d"
)


def soundness(o: Observation) -> float:
    """Log weight of "nothing is wrong", on the scale of the causes' scores."""
    weight = QUIET
    if o.evidence.error is not None or o.corrupt:
        weight -= 6
    reading = o.reading
    if reading.low or (reading.hits is not None and reading.hits < 0.05):
        weight -= 4
    if reading.speedup is not None:
        weight += 2.0 if reading.speedup > 1.3 else -3.0
    weight += _acceptance(o)
    if any(_uneven(c) for c in o.contrasts):
        weight -= 2.5
    if o.words.has(_COMPLAINT):
        weight -= 3
    return weight


def _uneven(contrast: Contrast) -> bool:
    """Acceptance differs, or speed does where the load is the same."""
    speed = 1.0 if "concurrency" in contrast.dimensions else contrast.speed or 1.0
    return not 0.7 < (contrast.accepted or 1.0) < 1.4 or not 0.6 < speed < 1.7


def _acceptance(o: Observation) -> float:
    tau, drafted = o.reading.tau, o.facts.drafted
    if o.share is not None:
        return 3.0 if o.share > 0.93 else 30 * (max(o.share, 0.6) - 0.93)
    low, high = PUBLISHED.get(o.evidence.method or "", (2.0, 9.0))
    if tau is None:
        return 2.0 if (o.reading.rate or 0) > 0.5 else 0.0
    # A short draft caps the length: three quarters of the way to K + 1 is as good as a long draft's figure.
    enough = min(low, 1 + 0.5 * drafted) if drafted else low
    return 3.0 if enough <= tau <= high + 1 else -2.0
