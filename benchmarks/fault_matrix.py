"""``python -m benchmarks.fault_matrix DRAFTER COUNTS``: each fault is put in and diagnosed from its curve alone.

Reads what ``benchmarks.fault_counts`` measured. Without the pair, *counters alone*: the rules on the curve, as with an
evidence file that says what the healthy pair keeps. With it, two ways: *other prompts*, the table from every second
text and the observation from the others, then the other way round; *same prompts*, where table and observation each
have an eighth of the texts for themselves, as when a server asked the table's prompts parts from ours at near-ties.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outrider.checkpoint import resolve
from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.explain import INVISIBLE, Explanation, explain
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.faults import HEALTHY, usual_faults
from outrider.doctor.ablation.part import Observed, effect_of
from outrider.doctor.ablation.published import PUBLISHED
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.doctor.evidence import Evidence
from outrider.doctor.examine import examine
from outrider.models.dflash.formats import read_drafter
from outrider.provenance import provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One fault put in, and what was made of its curve.

    Attributes:
        truth: tokens a round that it costs on the observed texts, paired.
        visible: whether the table says that so many rounds can show it.
        first, probability: what was named.
        right: the cause, or for a fault that cannot be seen that nothing was seen.
        among: the cause is the one named or one that is said not to be told from it.
        covered: the interval of the fault's effect, as the table gives it, holds the truth.
    """

    fault: str
    cause: str
    rounds: int
    truth: float
    visible: bool
    first: str
    probability: float
    right: bool
    among: bool
    covered: bool


@dataclass(frozen=True, slots=True)
class Split:
    """Which texts the table knows, and which are observed."""

    known: list[int]
    observed: list[int]

    def shared(self, healthy: Counts) -> float:
        """Share of the observed rounds that the table knows."""
        common = [text for text in self.observed if text in self.known]
        return healthy.some(common).rounds / healthy.some(self.observed).rounds


def main() -> None:
    """Diagnose, and write a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("drafter")
    parser.add_argument("counts", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = json.loads(given.counts.read_text(encoding="utf-8"))
    config = read_drafter(resolve(given.drafter)).config
    faults = usual_faults(config, config.num_target_layers or 1 + max(config.taps))
    table = _table(found["counts"], faults)
    texts = len(table.healthy.rounds_X)
    ways = {"other prompts": _trials(table, _halves(texts)), "same prompts": _trials(table, _eighths(texts))}
    alone = _alone(table)
    if given.json:
        print(json.dumps(_result(ways, alone, found["provenance"]), indent=1))
    else:
        print("\n".join((*_totals(ways), "", _told(alone), "", *_rows(table, ways, alone), "", *_published(table))))


@dataclass(frozen=True, slots=True)
class Ruled:
    """What the rules make of a fault's counters, without the pair.

    Attributes:
        named: the first three causes.
        place: of the right one among them.
    """

    named: Sequence[str]
    place: int | None


def _alone(table: AblationTable) -> dict[str, Ruled]:
    found = {}
    for entry in table.entries:
        named = _by_rules(entry.counts, table.healthy)
        place = named.index(entry.fault.cause) + 1 if entry.fault.cause in named else None
        found[entry.fault.label] = Ruled(named, place)
    return found


def _by_rules(seen: Counts, healthy: Counts) -> Sequence[str]:
    evidence = Evidence.model_validate(
        {
            "method": "dflash",
            "speculation": {"num_speculative_tokens": seen.drafted},
            "counters": {"rounds": seen.rounds, "accepted_per_position": list(seen.curve)},
            "expected": {"mean_acceptance_length": healthy.length, "source": "the same pair, measured before"},
        }
    )
    return [one.cause for one in examine(evidence).findings if one.standing != "refuted"][:3]


def _told(alone: dict[str, Ruled]) -> str:
    first = [found.place == 1 for found in alone.values()]
    three = [found.place is not None for found in alone.values()]
    return f"From counters alone: right cause first {_share(first)}, among the first three {_share(three)}."


def _result(ways: dict[str, list[Trial]], alone: dict[str, Ruled], measured: dict[str, Any]) -> dict[str, Any]:
    parts = {name: {"summary": _summary(trials), "trials": list(map(asdict, trials))} for name, trials in ways.items()}
    return {
        "ways": parts,
        "counters alone": {label: asdict(one) for label, one in alone.items()},
        "measured": measured,
        "provenance": provenance().model_dump(),
    }


def _table(found: dict[str, Any], faults: tuple[Fault, ...]) -> AblationTable:
    entries = tuple(Entry(fault, _counts(found[fault.label])) for fault in faults if fault.label in found)
    return AblationTable(_counts(found[HEALTHY.label]), entries)


def _counts(plain: dict[str, Any]) -> Counts:
    return Counts(np.array(plain["rounds"], dtype=np.float64), np.array(plain["hits"], dtype=np.float64))


def _halves(texts: int) -> list[Split]:
    """Halve the texts in several ways, each half in both places."""
    splits = []
    for stride in (1, 2, 4):
        one = [text for text in range(texts) if text // stride % 2 == 0]
        other = [text for text in range(texts) if text not in one]
        splits += [Split(one, other), Split(other, one)]
    return splits


def _eighths(texts: int) -> list[Split]:
    """Leave an eighth to the table alone, and another to the observation."""
    own = max(1, texts // 8)
    orders = [[(own * turn + 5 * index) % texts for index in range(texts)] for turn in range(texts // own)]
    return [Split(order[own:], order[:-own]) for order in orders]


def _trials(table: AblationTable, splits: list[Split]) -> list[Trial]:
    trials = []
    for split in splits:
        shared = split.shared(table.healthy)
        own, other = table.of_texts(split.known), table.of_texts(split.observed)
        pairs = zip(own.entries, other.entries, strict=True)
        trials += [_trial(entry, seen.counts, own, other.healthy, shared) for entry, seen in pairs]
    return sorted(trials, key=lambda trial: (trial.cause, trial.fault))


def _trial(entry: Entry, seen: Counts, table: AblationTable, healthy: Counts, shared: float) -> Trial:
    observed = Observed(seen.rounds, seen.curve)
    explanation = explain(observed, table, shared=shared)
    fault, first = entry.fault, explanation.ranking[0]
    truth, effect = seen.length - healthy.length, effect_of(entry, table, seen.rounds, shared)
    visible = fault.label not in explanation.invisible
    return Trial(
        fault=fault.label,
        cause=fault.cause,
        rounds=int(seen.rounds),
        truth=truth,
        visible=visible,
        first=first.cause,
        probability=first.probability,
        right=first.cause == fault.cause or (not visible and first.cause == INVISIBLE),
        among=_among(fault, explanation, visible=visible),
        covered=effect.low <= truth <= effect.high,
    )


def _among(fault: Fault, explanation: Explanation, *, visible: bool) -> bool:
    first = explanation.ranking[0]
    return fault.cause in (first.cause, *first.alike) or (not visible and first.cause == INVISIBLE)


def _summary(trials: list[Trial]) -> dict[str, str]:
    visible = [trial for trial in trials if trial.visible]
    return {
        "trials": str(len(trials)),
        "right cause first, or rightly nothing seen": _share([trial.right for trial in trials]),
        "right cause first, of faults that so many rounds can show": _share([trial.right for trial in visible]),
        "right cause named, or among those said to look alike": _share([trial.among for trial in trials]),
        "mean probability of what is named first": f"{np.mean([trial.probability for trial in trials] or [0]):.2f}",
        "effect interval holds the truth": _share([trial.covered for trial in trials]),
    }


def _share(flags: list[bool]) -> str:
    return f"{sum(flags)} of {len(flags)} ({100 * sum(flags) / max(1, len(flags)):.0f} %)"


def _rows(table: AblationTable, ways: dict[str, list[Trial]], alone: dict[str, Ruled]) -> list[str]:
    """One line a fault: its effect on all texts, then for each way how often it could be seen, was right, ..."""
    heads = [f"{name}: seen, right, or alike, interval holds" for name in ways]
    lines = [
        f"| cause | fault | tokens a round | {' | '.join(heads)} | counters alone: place |",
        f"|---|---|---|{'---|' * len(ways)}---|",
    ]
    for entry in sorted(table.entries, key=lambda entry: (entry.fault.cause, entry.fault.label)):
        effect, label = table.effect(entry), entry.fault.label
        cells = [_shares([trial for trial in trials if trial.fault == label]) for trials in ways.values()]
        size = f"{effect.value:+.2f} ({effect.low:+.2f} to {effect.high:+.2f})"
        place = alone[label].place or ""
        lines.append(f"| {entry.fault.cause} | {label} | {size} | {' | '.join(cells)} | {place} |")
    return lines


def _shares(trials: list[Trial]) -> str:
    flags = [(trial.visible, trial.right, trial.among, trial.covered) for trial in trials]
    return ", ".join(f"{sum(some)}" for some in zip(*flags, strict=True)) + f" of {len(trials)}"


def _totals(ways: dict[str, list[Trial]]) -> list[str]:
    summaries = {name: _summary(trials) for name, trials in ways.items()}
    lines = [f"| | {' | '.join(ways)} |", f"|---|{'---|' * len(ways)}"]
    rows = ((line, *(summary[line] for summary in summaries.values())) for line in _summary([]))
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def _published(table: AblationTable) -> list[str]:
    """What others measured beside what was measured here: the share of accepted tokens that is left."""
    lines = ["| cause | published | left | source | left here |", "|---|---|---|---|---|"]
    for one in PUBLISHED:
        own = [entry.counts.length for entry in table.entries if entry.fault.cause == one.cause]
        if not own:
            continue
        left = [f"{100 * (length - 1) / (table.healthy.length - 1):.0f}" for length in (min(own), max(own))]
        lines.append(f"| {one.cause} | {one.fault} | {100 * one.kept:.0f} % | {one.source} | {' to '.join(left)} % |")
    return lines


if __name__ == "__main__":
    main()
