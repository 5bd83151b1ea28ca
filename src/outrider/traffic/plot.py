"""Speed-up against concurrency and against draft length, as a picture. Needs matplotlib."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from outrider.errors import UsageError
from outrider.traffic.result import Row, TrafficResult

Points = Sequence[tuple[int, Row]]


def draw(result: TrafficResult, path: Path) -> None:
    """Draw; the ending of the path says in which format.

    Raises:
        UsageError: matplotlib is missing, the path cannot be written, or there is nothing to draw.
    """
    drafting = [row for row in result.rows if row.speedup is not None]
    if not drafting:
        raise UsageError("There is no speed-up to draw: a benchmark needs an arm that drafts, and two prompts.")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UsageError("--plot needs matplotlib: pip install 'outrider[plot]'.") from error
    lengths = {arm.name: (arm.method, arm.draft_length) for arm in result.arms}
    by_length = _by_length(drafting, lengths)
    figure = Figure(figsize=(5 * (2 if by_length else 1), 4), layout="constrained")
    axes: Any = figure.subplots(1, 2 if by_length else 1, squeeze=False)[0]
    _draw(axes[0], _by_arm(drafting), "requests at once")
    if by_length:
        _draw(axes[1], by_length, "draft length")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot write {path}: {error}") from error


def _by_arm(rows: Sequence[Row]) -> Mapping[str, Points]:
    found: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for row in rows:
        found[row.arm].append((row.concurrency, row))
    return found


def _by_length(rows: Sequence[Row], lengths: Mapping[str, tuple[str, int | None]]) -> Mapping[str, Points]:
    """Points by method and concurrency, of those that were measured at several lengths."""
    found: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for row in rows:
        method, length = lengths[row.arm]
        if length is not None:
            found[f"{method}, {row.concurrency} at once"].append((length, row))
    return {name: points for name, points in found.items() if len(points) > 1}


def _draw(axis: Any, curves: Mapping[str, Points], label: str) -> None:
    for name, points in curves.items():
        told = sorted(((x, row.speedup) for x, row in points if row.speedup is not None), key=lambda pair: pair[0])
        places, values = [x for x, _ in told], [ratio.value for _, ratio in told]
        below, above = [r.value - r.low for _, r in told], [r.high - r.value for _, r in told]
        axis.errorbar(places, values, yerr=[below, above], marker="o", capsize=3, label=name)
    axis.set_xticks(sorted({x for points in curves.values() for x, _ in points}))
    axis.axhline(1.0, color="grey", linestyle="--", linewidth=1)
    axis.set_xlabel(label)
    axis.set_ylabel("speed-up over plain decoding")
    axis.legend()
