"""Two benchmarks side by side: the same arm and concurrency in both, and whether they may be compared at all."""

from dataclasses import dataclass

from outrider.traffic.result import Row, TrafficResult

SAME = ("target", "max_tokens", "temperature", "rate", "chat", "prefix_caching", "categories")


@dataclass(frozen=True, slots=True)
class Pair:
    """An arm at a concurrency, before and after."""

    before: Row
    after: Row

    @property
    def throughput(self) -> float:
        """Tokens a second, after over before."""
        return self.after.tokens_per_second[0] / self.before.tokens_per_second[0]

    @property
    def apart(self) -> bool:
        """Repeats of the two do not overlap."""
        (_, low, high), (_, other_low, other_high) = self.before.tokens_per_second, self.after.tokens_per_second
        return high < other_low or other_high < low


def pairs(before: TrafficResult, after: TrafficResult) -> list[Pair]:
    """Return what both measured."""
    there = {(row.arm, row.concurrency): row for row in after.rows}
    keyed = [(row, there.get((row.arm, row.concurrency))) for row in before.rows]
    return [Pair(row, other) for row, other in keyed if other is not None]


def doubts(before: TrafficResult, after: TrafficResult) -> list[str]:
    """Return why the two may not be compared: what differs besides what was meant to."""
    found = []
    for name in SAME:
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            shown = "the prompts" if name == "categories" else f"{name.replace('_', ' ')} {one} and {other}"
            found.append(f"{shown} differ")
    if before.provenance.cpu != after.provenance.cpu:
        found.append(f"machines differ: {before.provenance.cpu} and {after.provenance.cpu}")
    versions = {arm.name: arm.version for arm in before.arms}
    found += [
        f"{arm.name}: version {versions[arm.name]} and {arm.version}"
        for arm in after.arms
        if versions.get(arm.name, arm.version) != arm.version
    ]
    return found
