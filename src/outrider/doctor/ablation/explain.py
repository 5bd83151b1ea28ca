"""Which fault explains an observed curve: every one that was tried, and pairs of them, by likelihood. Free of torch.

Faults that counters of this size cannot tell from the healthy pair are one family, *no visible effect*: naming one
of them would be a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from outrider.acceptance import Interval
from outrider.doctor.ablation.part import Observed, Part
from outrider.doctor.ablation.table import AblationTable
from outrider.doctor.ablation.weighing import Weighing
from outrider.errors import UsageError

INVISIBLE, UNEXPLAINED = "no_visible_effect", "unexplained"
WORTH = 0.01  # probability from which it is worth saying what an explanation looks like


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
    return explain_kinds([(observed, table)], table, shared=shared, priors=priors)


def explain_kinds(
    kinds: Sequence[tuple[Observed, AblationTable]],
    table: AblationTable,
    *,
    shared: float = 0.0,
    priors: Mapping[str, float] | None = None,
) -> Explanation:
    """Rank what may be the case, from one measurement for each kind of texts.

    Faults that cost alike on all texts together can part on short and long ones.

    Args:
        kinds: a measurement, and the table of texts of that kind.
        table: of all these texts.
        shared: as for ``explain``.
        priors: likewise.

    Raises:
        UsageError: as for ``explain``.
    """
    if not 0 <= shared < 1:
        raise UsageError(f"Share of texts in common: expected 0 to below 1 (texts part at near-ties), found {shared}.")
    parts = [Part(observed, some, shared) for observed, some in kinds]
    pooled = reduce(add, (observed for observed, _ in kinds))
    whole = parts[0] if len(parts) == 1 else Part(pooled, table, shared)
    return _summed(Weighing(whole, parts, priors or {}))


def _summed(weighing: Weighing) -> Explanation:
    groups: dict[str, list[int]] = {}
    for place in range(len(weighing.hypotheses)):
        groups.setdefault(_group(weighing, place), []).append(place)
    explained = (_explained(name, members, weighing) for name, members in groups.items())
    ranking = sorted(explained, key=lambda one: -one.probability)
    singles = list(enumerate(weighing.hypotheses[: weighing.num_singles]))
    alone = [
        (one.labels[0], weighing.above_healthy(place), one.effect) for place, one in singles if one.effect is not None
    ]
    invisible = tuple(one.labels[0] for place, one in singles if place not in weighing.visible)
    return Explanation(tuple(ranking), tuple(sorted(alone, key=lambda row: -row[1])), invisible)


def _group(weighing: Weighing, place: int) -> str:
    if place == len(weighing.hypotheses) - 1:
        return UNEXPLAINED
    one = weighing.hypotheses[place]
    alone = len(one.parts) == 1
    return INVISIBLE if not one.parts or (alone and place not in weighing.visible) else one.cause


def _explained(name: str, members: list[int], weighing: Weighing) -> Explained:
    best = max(members, key=lambda place: weighing.probabilities[place])
    one = weighing.hypotheses[best]
    probability = sum(weighing.probabilities[place] for place in members)
    alike: set[str] = set()
    if name not in (INVISIBLE, UNEXPLAINED) and probability > WORTH:
        alike = {weighing.hypotheses[place].cause for place in weighing.not_told_from(best, weighing.visible)} - {name}
    return Explained(name, probability, one.labels, one.effect, tuple(sorted(alike)))
