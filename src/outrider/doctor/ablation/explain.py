"""Which fault explains an observed curve: every one that was tried, and pairs of them, by likelihood. Free of torch.

Faults that counters of this size cannot tell from the healthy pair are one family, *no visible effect*: naming one
of them would be a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from outrider.acceptance import Interval
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.doctor.ablation.weighing import Weighing
from outrider.errors import UsageError

INVISIBLE, UNEXPLAINED = "no_visible_effect", "unexplained"
WORTH = 0.01  # probability from which it is worth saying what an explanation looks like


@dataclass(frozen=True, slots=True)
class Observed:
    """Counters of one measurement.

    Attributes:
        rounds: verification rounds.
        rates: u_1, u_2, ..., cumulative.
    """

    rounds: float
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        falling = all(0 <= later <= before for before, later in zip((1.0, *self.rates), self.rates, strict=False))
        if not self.rounds > 0 or not self.rates or not falling:
            raise UsageError(
                "An observed curve needs rounds above 0 and cumulative rates between 0 and 1 that do not rise; found "
                f"{self.rounds:g} rounds and {', '.join(f'{rate:g}' for rate in self.rates) or 'no rates'}."
            )

    @property
    def length(self) -> float:
        """Acceptance length."""
        return 1 + sum(self.rates)


@dataclass(frozen=True, slots=True)
class Explained:
    """One explanation.

    Attributes:
        cause: the spec's; two joined by `` + ``; or ``no_visible_effect`` or ``unexplained``.
        probability: given the observation, the table and the prior.
        faults: the likeliest at their strengths; none for the healthy pair and the unexplained.
        effect: tokens a round above the healthy pair, of the likeliest; None where nothing explains.
        alike: causes that a measurement of this size cannot tell from the likeliest.
    """

    cause: str
    probability: float
    faults: tuple[str, ...]
    effect: Interval | None
    alike: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All of them, the likeliest first.

    Attributes:
        ranking: causes, and pairs of causes.
        alone: each fault by itself: label, log-likelihood above that of the healthy pair, effect; likeliest first.
        invisible: faults that this measurement could not see.
    """

    ranking: tuple[Explained, ...]
    alone: tuple[tuple[str, float, Interval], ...]
    invisible: tuple[str, ...]


def explain(
    observed: Observed, table: AblationTable, *, shared: float = 0.0, priors: Mapping[str, float] | None = None
) -> Explanation:
    """Rank what may be the case.

    Args:
        observed: on texts of the same kind as the table's.
        table: of the same pair.
        shared: share of the observed rounds that are on the table's own texts, whose chance is then no difference: 0
            for other prompts, near 1 for the same ones at temperature 0.
        priors: weight of each cause; 1 where nothing is said.

    Raises:
        UsageError: more positions than the table has, or all rounds said to be shared.
    """
    if not 0 <= shared < 1:
        raise UsageError(f"Share of texts in common: expected 0 to below 1 (texts part at near-ties), found {shared}.")
    if len(observed.rates) > table.positions:
        raise UsageError(
            f"The curve has {len(observed.rates)} positions, the table {table.positions}: more was drafted than was "
            "tried. Ablate with a block as long."
        )
    effects = [effect_of(entry, table, observed.rounds, shared) for entry in table.entries]
    return _summed(Weighing(observed.rounds, observed.rates, table, effects, shared, priors or {}))


def effect_of(entry: Entry, table: AblationTable, rounds: float, shared: float = 0.0) -> Interval:
    """Tokens a round that a fault brings on the texts of so many observed rounds, with its interval."""
    wider = ((1 - shared) * (1 + entry.counts.rounds / rounds)) ** 0.5
    return entry.counts.difference(table.healthy, wider=wider)


def _summed(weighing: Weighing) -> Explanation:
    groups: dict[str, list[int]] = {}
    for index in range(len(weighing.hypotheses)):
        groups.setdefault(_group(weighing, index), []).append(index)
    explained = (_explained(name, members, weighing) for name, members in groups.items())
    ranking = sorted(explained, key=lambda one: -one.probability)
    alone = [
        (one.labels[0], weighing.above_healthy(index), one.effect)
        for index, one in enumerate(weighing.singles)
        if one.effect is not None
    ]
    invisible = tuple(one.labels[0] for one in weighing.singles if one not in weighing.visible)
    return Explanation(tuple(ranking), tuple(sorted(alone, key=lambda row: -row[1])), invisible)


def _group(weighing: Weighing, index: int) -> str:
    one = weighing.hypotheses[index]
    if one is weighing.nothing:
        return UNEXPLAINED
    alone = len(one.parts) == 1
    return INVISIBLE if not one.parts or (alone and one not in weighing.visible) else one.cause


def _explained(name: str, members: list[int], weighing: Weighing) -> Explained:
    best = weighing.hypotheses[max(members, key=lambda index: weighing.probabilities[index])]
    probability = sum(weighing.probabilities[index] for index in members)
    alike: set[str] = set()
    if name not in (INVISIBLE, UNEXPLAINED) and probability > WORTH:
        alike = {one.cause for one in weighing.not_told_from(best, weighing.visible)} - {name}
    return Explained(name, probability, best.labels, best.effect, tuple(sorted(alike)))
