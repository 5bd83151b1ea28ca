"""Is the number what it is taken for? These rules run first: a wrong number must not become a wrong diagnosis."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Iterator
from math import isclose

from outrider.doctor.observation import Observation
from outrider.doctor.rules.shape import better_elsewhere, failure, healthy_acceptance
from outrider.doctor.rules.signal import Signal
from outrider.doctor.rules.words import said


def metrics_definition(o: Observation) -> Iterator[Signal]:
    """The number does not mean what it was taken for."""
    yield from said("metrics_definition", o)
    for conflict in o.reading.conflicts:
        yield Signal(conflict, 2.0, "curve", proof="above 1" in conflict or "below 1" in conflict)
    block, drafted = o.facts.block, o.facts.drafted
    if o.facts.block_method and block is not None and block == drafted and not o.reading.measured:
        yield Signal(f"the draft length {drafted} equals the block size, which counts the anchor", 1.8, "setting")
    yield from _units(o)
    if o.reading.collapsed:
        yield Signal("the whole measurement is near nothing, which no definition explains", -1.5, "curve")
    if failure(o) or o.corrupt:
        yield Signal("the trouble is not a number", -2.5, "output")


def _units(o: Observation) -> Iterator[Signal]:
    tau, expected, drafted = o.reading.tau, o.expected, o.facts.drafted
    if tau is not None and expected is not None and isclose(abs(tau - expected), 1.0, abs_tol=0.05):
        yield Signal(f"{tau:.2f} and the {expected:.2f} expected differ by one: the bonus token", 1.2, "curve")
    rate = o.reading.rate
    if rate is not None and drafted and drafted >= 7 and 0.1 <= rate <= 0.45 and (tau or 1 + rate * drafted) > 2.8:
        yield Signal(
            f"a rate of {rate:.2f} over {drafted} drafted tokens is a length of {1 + rate * drafted:.1f}", 0.7, "curve"
        )
    if (
        o.words.has(r"\b(ngram|suffix|p_min|p-min|dynamic|adaptive)", "settings", "names", "notes")
        and not o.reading.low
    ):
        yield Signal("rounds draft unlike numbers of tokens, so a rate has no fixed denominator", 0.7, "setting")
    workload = better_elsewhere(o, "workload")
    if workload is not None and o.words.has(r"random", "traffic", "series") and healthy_acceptance(o):
        yield Signal("random prompts are compared with real ones", 1.0, "contrast")
