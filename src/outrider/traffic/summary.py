"""From the cells of a benchmark to its rows: speeds, latencies, acceptance, and the ratio to the base arm.

Counts and times are pooled before they are divided. Pure arithmetic.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from outrider.bench.timing import Work, median_or_none, speed, speed_ratio, typical
from outrider.results import Ratio
from outrider.traffic.result import Asked, Cell, Row

LATE = 0.95
PROMPTS = 2  # from so many on prompts can be resampled


def rows(cells: Sequence[Cell], base: str, *, greedy: bool) -> list[Row]:
    """Return a row for each arm and concurrency.

    Args:
        cells: all of them.
        base: the arm that speeds are divided by.
        greedy: texts may be compared.
    """
    groups: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.arm, cell.concurrency].append(cell)
    return [
        _row(group, groups.get((base, concurrency), []) if arm != base else [], greedy=greedy)
        for (arm, concurrency), group in groups.items()
        if any(cell.asked for cell in group)
    ]


def _row(cells: Sequence[Cell], base: Sequence[Cell], *, greedy: bool) -> Row:
    asked = [one for cell in cells for one in cell.asked]
    tpots = [(one.seconds - one.ttft_s) / (one.tokens - 1) for one in asked if one.tokens > 1]
    whole = [sum(one.tokens for one in cell.asked) / cell.seconds for cell in cells if cell.asked]
    total = sum(one.tokens for one in asked) / sum(cell.seconds for cell in cells if cell.asked)
    rounds, drafted, accepted = (
        _sum(getattr(cell, name) for cell in cells) for name in ("rounds", "drafted", "accepted")
    )
    words = sum(one.words for one in asked)
    length, speedup = _length(cells, rounds, accepted), _speedup(cells, base)
    return Row(
        arm=cells[0].arm,
        concurrency=cells[0].concurrency,
        requests=len(asked),
        failed=sum(len(cell.failures) for cell in cells),
        tokens_per_second=(total, min(whole), max(whole)),
        request_speed=speed(_work(one) for one in asked) or 0.0,
        ttft_s=median(one.ttft_s for one in asked),
        ttft_p95_s=_late([one.ttft_s for one in asked]),
        tpot_s=median_or_none(tpots),
        tpot_p95_s=_late(tpots) if tpots else None,
        acceptance_length=length,
        acceptance_rate=accepted / drafted if drafted and accepted is not None else None,
        position_rates=_positions(cells, rounds),
        speedup=speedup,
        break_even=length / speedup.value if length and speedup else None,
        same_texts=_same(cells, base) if greedy else None,
        diversity=sum(one.distinct for one in asked) / words if words else None,
    )


def _work(one: Asked) -> Work:
    return Work(one.tokens, one.seconds)


def _sum(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) if told else None


def _late(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(LATE * len(values)))]


def _length(cells: Sequence[Cell], rounds: float | None, accepted: float | None) -> float | None:
    if rounds and accepted is not None:
        return 1 + accepted / rounds
    return median_or_none(cell.length for cell in cells if cell.length is not None)


def _positions(cells: Sequence[Cell], rounds: float | None) -> list[float]:
    depth = max((len(cell.per_position) for cell in cells), default=0)
    hits = [sum(cell.per_position[k] for cell in cells if k < len(cell.per_position)) for k in range(depth)]
    return [value / rounds for value in hits] if rounds else []


def _by_prompt(cells: Sequence[Cell]) -> dict[int, Work]:
    """Of each prompt the repeat of median time."""
    found: dict[int, list[Work]] = defaultdict(list)
    for cell in cells:
        for one in cell.asked:
            found[one.prompt].append(_work(one))
    return {prompt: typical(works) for prompt, works in found.items()}


def _speedup(cells: Sequence[Cell], base: Sequence[Cell]) -> Ratio | None:
    """Request speed over the base's on the prompts that both answered."""
    ours, theirs = _by_prompt(cells), _by_prompt(base)
    both = sorted(prompt for prompt in ours.keys() & theirs.keys() if ours[prompt].tokens and theirs[prompt].tokens)
    if len(both) < PROMPTS:
        return None
    found = speed_ratio([ours[prompt] for prompt in both], [theirs[prompt] for prompt in both])
    return Ratio(value=found.value, low=found.low, high=found.high, unit="prompts")


def _same(cells: Sequence[Cell], base: Sequence[Cell]) -> tuple[int, int] | None:
    """Answers that the base arm gave too, in any of its repeats: engines are not always equal to themselves."""
    texts: dict[int, set[str]] = defaultdict(set)
    for cell in base:
        for one in cell.asked:
            texts[one.prompt].add(one.digest)
    compared = [one.digest in texts[one.prompt] for cell in cells for one in cell.asked if one.prompt in texts]
    return (sum(compared), len(compared)) if compared else None
