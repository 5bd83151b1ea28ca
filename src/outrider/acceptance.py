"""Counts of rounds in, acceptance length, rates and intervals out.

Raw counts are kept and ratios are formed last, pooled over rounds. Knows no engine and no drafter:
a round is three numbers, whoever ran it. Words and formulas are those of ``docs/glossary.md``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Literal, Self

from outrider.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Round:
    """One proposal and its verification.

    Attributes:
        drafted: Nodes proposed, the root not counted.
        depth: Depth of the deepest node offered; for a chain the same as ``drafted``.
        accepted: Draft tokens kept (a), the bonus token not counted.
    """

    drafted: int
    depth: int
    accepted: int

    def __post_init__(self) -> None:
        if not 0 <= self.accepted <= self.depth <= self.drafted or (self.drafted and not self.depth):
            raise UsageError(
                "A round needs 0 <= accepted <= depth <= drafted, and depth 0 only when nothing "
                f"was drafted; found accepted {self.accepted}, depth {self.depth}, "
                f"drafted {self.drafted}. Do not count the root or the bonus token."
            )


@dataclass(frozen=True, slots=True)
class Interval:
    """A measured value and the bounds of its bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """Bootstrap intervals of one measurement.

    Attributes:
        unit: What was resampled. Sequences, as the rounds of one text are correlated; rounds when
            there is one sequence only, and then the interval speaks of that text alone.
        length: Of the acceptance length; None without rounds.
        rate: Of the acceptance rate; None when nothing was drafted.
        positions: Of u_1, u_2, ...
    """

    unit: Literal["sequences", "rounds"]
    length: Interval | None
    rate: Interval | None
    positions: tuple[Interval, ...]


@dataclass(frozen=True)
class Acceptance:
    """The rounds of a measurement, grouped by sequence; a sequence without rounds is left out."""

    sequences: tuple[tuple[Round, ...], ...] = ()

    @classmethod
    def from_sequences(cls, sequences: Iterable[Iterable[Round]]) -> Self:
        """Group the rounds of several sequences."""
        groups = (tuple(rounds) for rounds in sequences)
        return cls(tuple(group for group in groups if group))

    def __add__(self, other: "Acceptance") -> "Acceptance":
        return Acceptance(self.sequences + other.sequences)

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds, in order."""
        return tuple(chain.from_iterable(self.sequences))

    @property
    def num_rounds(self) -> int:
        """Rounds run."""
        return len(self.rounds)

    @cached_property
    def num_drafted(self) -> int:
        """Draft tokens proposed."""
        return sum(r.drafted for r in self.rounds)

    @cached_property
    def num_accepted(self) -> int:
        """Draft tokens kept."""
        return sum(r.accepted for r in self.rounds)

    @property
    def max_depth(self) -> int:
        """The deepest position that any round offered."""
        return max((r.depth for r in self.rounds), default=0)

    @property
    def length(self) -> float | None:
        """Acceptance length tau = 1 + accepted / rounds; None without rounds."""
        return 1 + self.num_accepted / self.num_rounds if self.rounds else None

    @property
    def rate(self) -> float | None:
        """Acceptance rate r = accepted / drafted; None when nothing was drafted."""
        return self.num_accepted / self.num_drafted if self.num_drafted else None

    @cached_property
    def position_rates(self) -> tuple[float, ...]:
        """u_k: share of *all* rounds that accepted positions 1..k; tau = 1 + sum of u_k."""
        return tuple(hits / self.num_rounds for hits in self._reached(lambda r: r.accepted))

    @property
    def conditional_rates(self) -> tuple[float | None, ...]:
        """c_k = u_k / u_(k-1), with u_0 = 1; None where no round accepted position k-1."""
        before = (1.0, *self.position_rates)
        pairs = zip(self.position_rates, before, strict=False)
        return tuple(u / u_before if u_before else None for u, u_before in pairs)

    def intervals(self, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0) -> Intervals:
        """Percentile bootstrap; bounds that would exclude the measured value are widened to it."""
        unit: Literal["sequences", "rounds"] = "sequences" if len(self.sequences) > 1 else "rounds"
        if not self.rounds:
            return Intervals(unit=unit, length=None, rate=None, positions=())
        totals = self._resampled_totals(unit, resamples, seed)
        rounds, drafted, accepted = totals[:, 0], totals[:, 1], totals[:, 2]
        tau = 1 + self.num_accepted / self.num_rounds
        length = ratio_interval(rounds + accepted, rounds, confidence, tau)
        rate = None if self.rate is None else ratio_interval(accepted, drafted, confidence, self.rate)
        positions = tuple(
            ratio_interval(totals[:, 3 + i], rounds, confidence, u) for i, u in enumerate(self.position_rates)
        )
        return Intervals(unit=unit, length=length, rate=rate, positions=positions)

    def _reached(self, height: Callable[[Round], int]) -> list[int]:
        """Count, for k = 1..max_depth, the rounds whose ``height`` is at least k."""
        heights = [height(r) for r in self.rounds]
        return [sum(h >= k for h in heights) for k in range(1, self.max_depth + 1)]

    def _resampled_totals(self, unit: str, resamples: int, seed: int) -> "NDArray[np.float64]":
        """Sums of (rounds, drafted, accepted, hits of position 1, 2, ...) in each resample."""
        groups = self.sequences if unit == "sequences" else tuple((r,) for r in self.rounds)
        return resampled_sums([self._sums(group) for group in groups], resamples, seed)

    def _sums(self, group: tuple[Round, ...]) -> list[int]:
        drafted = sum(r.drafted for r in group)
        accepted = sum(r.accepted for r in group)
        hits = [sum(r.accepted >= k for r in group) for k in range(1, self.max_depth + 1)]
        return [len(group), drafted, accepted, *hits]


def resampled_sums(rows: Sequence[Sequence[float]], resamples: int, seed: int) -> "NDArray[np.float64]":
    """Column sums of as many rows, drawn with replacement: one row of sums a resample."""
    import numpy as np

    # Equal rows are drawn together: the same law, and thousands of rounds stay cheap.
    kinds, counts = np.unique(np.array(rows, dtype=np.float64), axis=0, return_counts=True)
    chances = counts / len(rows)
    draws = np.random.default_rng(seed).multinomial(len(rows), chances, size=resamples)
    sums: NDArray[np.float64] = draws @ kinds
    return sums


def ratio_interval(
    above: "NDArray[np.float64]", below: "NDArray[np.float64]", confidence: float, value: float
) -> Interval:
    """Percentile interval of above / below; resamples with nothing below are left out."""
    import numpy as np

    usable = below > 0
    ratios = above[usable] / below[usable]
    if not ratios.size:
        return Interval(value, value, value)
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return Interval(value, min(value, float(low)), max(value, float(high)))
