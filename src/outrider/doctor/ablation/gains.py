"""Readings under which a pair drafts better than its files say: then the files are wrong, and not the engine."""

from collections.abc import Iterable
from dataclasses import dataclass

from outrider.acceptance import Interval
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.doctor.verdict import Cause

READ: frozenset[Cause] = frozenset(
    {"swa_ignored", "causal_flag", "layer_id_offset", "wrong_layer_ids", "mask_token", "position_or_rope"}
)
"""Causes that a config's own words can have. Other draft lengths or temperatures are choices, not mistakes."""
LEAST = 0.1  # tokens a round
HARDLY = 1.5  # acceptance length below which a pair is read anew: trained pairs keep twice that


@dataclass(frozen=True, slots=True)
class Gain:
    """One reading that is better.

    Attributes:
        effect: tokens a round above the files as they are.
        length: acceptance length with it.
    """

    cause: Cause
    label: str
    effect: Interval
    length: float


def gains(table: AblationTable, more: Iterable[Entry] = ()) -> list[Gain]:
    """Return the best reading of each cause that is surely better, the best first.

    Args:
        table: of the pair as its files are.
        more: readings that were tried beside, on the same texts.
    """
    best: dict[Cause, Gain] = {}
    for entry in (*table.entries, *more):
        effect = table.effect(entry)
        if entry.fault.cause not in READ or effect.low <= 0 or effect.value < LEAST:
            continue
        known = best.get(entry.fault.cause)
        if known is None or effect.value > known.effect.value:
            best[entry.fault.cause] = Gain(entry.fault.cause, entry.fault.label, effect, entry.counts.length)
    return sorted(best.values(), key=lambda gain: -gain.effect.value)
