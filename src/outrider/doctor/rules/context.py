"""Rules on what happens to context: lost features, lost cache hits, positions."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Iterator

from outrider.doctor.observation import Observation
from outrider.doctor.rules.shape import better_elsewhere, failure, falls_with, healthy_acceptance, moved
from outrider.doctor.rules.signal import Signal
from outrider.doctor.rules.words import said

_WITHOUT_CACHE = r"(no|without|disabl\w+)[-_ ](\w+[-_ ])?(prefix|radix|cach\w+)"


def context_kv_dropped(o: Observation) -> Iterator[Signal]:
    """The drafter's context features or keys are lost for part of the context."""
    yield from said("context_kv_dropped", o)
    for signal in moved(o, "prefix", 3.2 if o.facts.feature_fed else 1.5, "prefix caching decides"):
        yield Signal(signal.text, signal.weight * (0.3 if o.corrupt else 1.0), signal.kind)
    yield from falls_with(o, "context", r"context|prompt|depth", 0.8, "acceptance falls with context")
    yield from falls_with(o, "time", r"request|hours|turn|uptime", 1.2, "acceptance falls as it runs")
    if not o.facts.feature_fed and o.evidence.method not in ("mtp", "draft_model"):
        yield Signal("this method keeps no context features", -2.5, "file")
    if o.corrupt:
        yield Signal("the target checks every token, so this changes no text", -2.0, "output")
    if healthy_acceptance(o) and not o.at("prefix"):
        yield Signal("acceptance is as expected", -1.5, "curve")


def prefix_cache(o: Observation) -> Iterator[Signal]:
    """Prefix caching is lost, or restores less than it should."""
    yield from said("prefix_cache", o)
    hits = o.reading.hits
    if hits is not None and hits < 0.05:
        on = o.facts.prefix_caching
        yield Signal(
            "no prefix cache hits" + (" with caching on" if on else ""), 2.6 if on is not False else -1.0, "curve"
        )
    lost = next((c for c in o.contrasts if c.hits is not None and abs(c.hits) > 0.2), None)
    if lost is not None:
        yield Signal(f"hit rates differ by {lost.hits:+.2f} at {lost.told}", 1.8, "contrast")
    for signal in moved(o, "prefix", 1.2, "prefix caching matters"):
        if signal.weight > 0:
            yield signal
    if o.reading.collapsed and hits is None:
        yield Signal("lost hits cost time, not acceptance", -1.0, "curve")
    if o.corrupt:
        yield Signal("lost hits change no text", -1.0, "output")
    if failure(o):
        yield Signal("lost hits raise no error", -1.5, "output")


def position_or_rope(o: Observation) -> Iterator[Signal]:
    """Positions or rotary settings differ from training."""
    yield from said("position_or_rope", o)
    factor = o.facts.drafter.get("partial_rotary_factor")
    if isinstance(factor, int | float) and factor < 1 and o.facts.feature_fed:
        yield Signal(
            f"partial_rotary_factor {factor} in the drafter's config: trainers rotate the whole head", 3.0, "file"
        )
    thetas = o.facts.drafter.get("rope_theta"), o.facts.target.get("rope_theta")
    if all(isinstance(t, int | float) for t in thetas) and thetas[0] != thetas[1]:
        yield Signal(f"rotary bases {thetas[0]} and {thetas[1]}", 1.2, "file")
    if o.facts.drafter.get("mrope_section") or o.facts.drafter.get("rope_scaling"):
        yield Signal("the drafter's config scales or splits its rotary embedding", 0.8, "file")
    if o.evidence.drafter.made_config and o.facts.feature_fed:
        yield Signal("the config was written by hand: its rotary settings are a guess", 1.6, "file")
    yield from _too_long(o)
    yield from falls_with(o, "context", r"context|prompt|depth", 1.4, "acceptance falls with context")
    if o.corrupt:
        yield Signal("the target checks every token, so this changes no text", -1.5, "output")
    if healthy_acceptance(o) and not o.at("context"):
        yield Signal("acceptance is as expected", -1.2, "curve")
    switch = better_elsewhere(o, "prefix") or better_elsewhere(o, "graphs") or better_elsewhere(o, "precision")
    if switch is not None:
        yield Signal(f"{switch.told} decides, and positions do not depend on it", -1.5, "contrast")


def _too_long(o: Observation) -> Iterator[Signal]:
    longest = o.facts.drafter.get("max_position_embeddings")
    asked = (o.facts.settings.get("max_model_len"), o.evidence.traffic.prompt_tokens)
    beyond = [
        length for length in asked if isinstance(length, int | float) and isinstance(longest, int) and length > longest
    ]
    if beyond:
        yield Signal(f"lengths of {max(beyond):.0f} where the drafter's positions end at {longest}", 1.8, "file")
