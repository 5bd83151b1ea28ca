"""From the samples of an arm to its speeds, ratios and differences. Pure arithmetic.

Repeats of a prompt are reduced to the one of median time; prompts are then pooled.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import Literal

from outrider.bench.protocol import Ready
from outrider.bench.timing import Work, median_or_none, speed, speed_ratio, typical
from outrider.results import ArmResult, Ratio, Sample


@dataclass(slots=True)
class Measured:
    """Samples of one arm, and the tokens of each prompt the first time."""

    samples: list[Sample] = field(default_factory=list)
    tokens: dict[int, list[int]] = field(default_factory=dict)


def summarise(
    name: str,
    ready: Ready,
    measured: Measured,
    base: Measured,
    categories: Sequence[str],
    *,
    peak: int | None,
) -> ArmResult:
    """Sum up one arm against the base arm."""
    differences = [first_difference(measured.tokens[i], base.tokens[i]) for i in range(len(categories))]
    samples = measured.samples
    steps = (sample.step_seconds or [] for sample in samples)
    rounds = sum(sample.rounds for sample in samples)
    accepted = sum(sample.accepted for sample in samples)
    whole = [typical(works) for works in _by_prompt(samples, whole_run)]
    return ArmResult(
        name=name,
        about=ready.ready,
        load_seconds=ready.load_seconds,
        peak_bytes=peak,
        samples=samples,
        tokens_per_second=speed(whole) or 0.0,
        decode_tokens_per_second=speed(typical(w) for w in _by_prompt(samples, decoding)),
        median_prefill_seconds=median(sample.prefill_seconds for sample in samples),
        median_step_seconds=median_or_none(chain.from_iterable(steps)),
        acceptance_length=1 + accepted / rounds if rounds else None,
        ratios=_ratios(samples, base.samples, categories, whole_run),
        decode_ratios=_ratios(samples, base.samples, categories, decoding),
        same_tokens=differences.count(None),
        first_differences=differences,
    )


def whole_run(sample: Sample) -> Work:
    """All tokens in all the time."""
    return Work(sample.tokens, sample.seconds)


def decoding(sample: Sample) -> Work:
    """The tokens after the first, which the prefill decides, in the time after the prefill."""
    return Work(sample.tokens - 1, max(0.0, sample.seconds - sample.prefill_seconds))


def first_difference(ours: Sequence[int], base: Sequence[int]) -> int | None:
    """The first position at which two texts differ, a missing token included; None when equal."""
    for position, (a, b) in enumerate(zip(ours, base, strict=False)):
        if a != b:
            return position
    return None if len(ours) == len(base) else min(len(ours), len(base))


def _by_prompt(samples: Sequence[Sample], work: Callable[[Sample], Work]) -> list[list[Work]]:
    """The repeats of each prompt, in the order of repeats."""
    groups: dict[int, list[Work]] = defaultdict(list)
    for sample in sorted(samples, key=lambda s: (s.prompt, s.repeat)):
        groups[sample.prompt].append(work(sample))
    return list(groups.values())


def _ratios(
    ours: Sequence[Sample],
    base: Sequence[Sample],
    categories: Sequence[str],
    work: Callable[[Sample], Work],
) -> dict[str, Ratio]:
    """Speed ratios over all prompts and over those of each category, where there was time."""
    our_works, base_works = _by_prompt(ours, work), _by_prompt(base, work)
    members = {"all": list(range(len(categories)))}
    for index, category in enumerate(categories):
        members.setdefault(category, []).append(index)
    found = {}
    for category, prompts in members.items():
        a = [our_works[i] for i in prompts]
        b = [base_works[i] for i in prompts]
        if all(w.tokens and w.seconds > 0 for w in chain(*a, *b)):
            found[category] = _ratio(a, b)
    return found


def _ratio(ours: list[list[Work]], base: list[list[Work]]) -> Ratio:
    """Resample prompts; of a single prompt, its repeats."""
    unit: Literal["prompts", "repeats"] = "prompts" if len(ours) > 1 else "repeats"
    if unit == "prompts":
        found = speed_ratio([typical(w) for w in ours], [typical(w) for w in base])
    else:
        found = speed_ratio(ours[0], base[0])
    return Ratio(value=found.value, low=found.low, high=found.high, unit=unit)
