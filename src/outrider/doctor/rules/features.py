"""Rules on what a drafter is fed and how it attends: taps, mask token, causality, windows."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Iterator, Sequence

from outrider.doctor.observation import Observation
from outrider.doctor.rules.shape import falls_with, healthy_acceptance, moved
from outrider.doctor.rules.signal import Signal
from outrider.doctor.rules.words import said

_CAUSALITY = {"is_causal", "causal", "sliding_window_non_causal"}


def layer_id_offset(o: Observation) -> Iterator[Signal]:
    """Target features tapped one layer off."""
    yield from said("layer_id_offset", o)
    if o.facts.taps is not None and o.facts.feature_fed:
        yield Signal("the config lists its taps, which engines read under unlike conventions", 0.3, "file")
    if o.share is not None and 0.8 <= o.share <= 0.97:
        yield Signal(f"a small, even loss: {o.share:.2f} of what was expected", 1.0, "curve")
    yield from _no_collapse(o, "one layer off is no collapse")


def wrong_layer_ids(o: Observation) -> Iterator[Signal]:
    """Target features from the wrong layers, or in the wrong order or number."""
    yield from said("wrong_layer_ids", o)
    taps, layers = o.facts.taps, o.facts.target.get("num_hidden_layers") or o.facts.drafter.get("num_target_layers")
    if taps and isinstance(layers, int) and max(taps) >= layers:
        # Conventions that count layer inputs may list the number of layers itself; beyond it no convention goes.
        beyond = max(taps) > layers
        yield Signal(f"tap {max(taps)} of a target with {layers} layers", 3.0 if beyond else 2.6, "file", proof=beyond)
    if taps and (taps != sorted(taps) or len(set(taps)) < len(taps)):
        # An engine that sorts them harms a drafter that was trained so, and heals a list that was written so.
        harmed = not o.reading.measured or o.reading.collapsed or (o.share or 1) < 0.5
        yield Signal(f"taps {taps} are unsorted or repeated; engines sort them", 2.0 if harmed else 0.4, "file")
    yield from _fused(o, taps)
    if o.facts.feature_fed and o.facts.evidence.drafter.config and taps is None and not o.facts.built_in:
        yield Signal("the config names no taps, so the engine guesses them", 0.5, "file")
    if o.reading.collapsed and o.facts.feature_fed:
        yield Signal("next to nothing accepted, as with features of the wrong layers", 0.5, "curve")
    if o.facts.evidence.drafter.made_config and o.facts.feature_fed:
        yield Signal("the config was written by hand: its taps are a guess", 2.4, "file")


def _fused(o: Observation, taps: list[int] | None) -> Iterator[Signal]:
    shape = next((s for name, s in o.evidence.drafter.tensors.items() if name.endswith("fc.weight")), None)
    hidden = o.facts.target.get("hidden_size") or o.facts.drafter.get("hidden_size")
    if shape is None or len(shape) != 2 or not taps or not isinstance(hidden, int):
        return
    if shape[1] != len(taps) * hidden:
        says = f"fc takes {shape[1]} features, the config lists {len(taps)} taps of {hidden}"
        yield Signal(says, 3.5, "file", proof=True)


def mask_token(o: Observation) -> Iterator[Signal]:
    """Wrong mask token id, or a mask embedding that is not there."""
    yield from said("mask_token", o)
    mask, vocabulary = o.facts.drafter.get("mask_token_id"), o.facts.vocabulary[1] or o.facts.drafter.get("vocab_size")
    if isinstance(mask, int) and isinstance(vocabulary, int) and not 0 <= mask < vocabulary:
        yield Signal(f"mask token {mask} is outside the vocabulary of {vocabulary}", 4.0, "file", proof=True)
    if o.facts.block_method and len(o.facts.drafter) > 4 and mask is None:
        yield Signal("the config has no mask token id", 1.2, "file")
    if o.facts.evidence.drafter.made_config and o.facts.block_method:
        yield Signal("the config was written by hand: its mask token is a guess", 2.0, "file")
    if o.facts.block_method and (o.reading.low or (o.share or 1) < 0.5):
        yield Signal("a block drafter far below its figure", 0.4, "curve")


def causal_flag(o: Observation) -> Iterator[Signal]:
    """Layers run causal where they were trained bidirectional, or the reverse."""
    yield from said("causal_flag", o)
    if o.facts.block_method and o.facts.windowed and not _CAUSALITY & set(o.facts.drafter):
        yield Signal(
            "sliding layers without a causality key: engines differ in what they take for granted", 0.8, "file"
        )
    if _CAUSALITY & set(o.facts.drafter):
        yield Signal("the config sets causality, which some versions do not read", 1.2, "file")
    if o.share is not None and 0.8 <= o.share <= 0.97 and o.facts.block_method:
        yield Signal(f"the loss, to {o.share:.2f}, is of the size that a wrong causality costs", 0.9, "curve")
    conditional = o.reading.conditional
    if len(conditional) >= 4 and conditional[0] > 0.6 and conditional[2] < 0.75 * conditional[0]:
        yield Signal("the first position is well and later ones fall off", 0.5, "curve")
    yield from _no_collapse(o, "a wrong causality costs a sixth, not everything")


def swa_ignored(o: Observation) -> Iterator[Signal]:
    """Sliding-window layers run as full attention, or with another window."""
    yield from said("swa_ignored", o)
    if o.facts.windowed:
        yield Signal("the drafter's config has sliding-window layers", 1.2, "file")
    elif o.facts.layer_types:
        yield Signal("all layers of the drafter are full", -3.0, "file")
    yield from falls_with(
        o, "context", r"context|prompt|depth", 1.4 + o.facts.windowed, "acceptance falls with context"
    )
    if _tail_cut(o.reading.positions):
        yield Signal("the head of the curve is alive and the tail is exactly nothing", 0.7, "curve")
    window, prompt = o.facts.window, o.evidence.traffic.prompt_tokens
    if window is not None and prompt is not None and prompt < window and not o.at("context"):
        yield Signal(f"prompts of {prompt:.0f} tokens fit the window of {window}", -2.5, "file")
    if o.facts.windowed and o.words.has(r"mixed|both sliding|two (kv )?groups"):
        yield Signal("sliding and full layers side by side, which needs two cache groups", 1.2, "words")
    yield from _no_collapse(o, "an ignored window leaves the first positions alive", 0.8 if o.facts.windowed else 1.8)


def _tail_cut(positions: Sequence[float]) -> bool:
    """Nothing passes the last position, though at the pace of the first two something would."""
    if len(positions) < 6 or positions[0] <= 0.4 or positions[-1] >= 0.003:
        return False
    pace = positions[1] / positions[0]
    return positions[0] * pace ** (len(positions) - 1) > 0.01


def _no_collapse(o: Observation, says: str, weight: float = 1.8) -> Iterator[Signal]:
    """The mild faults: none explains nothing accepted, another text, an error, or a loss of speed alone."""
    if o.reading.collapsed:
        yield Signal(says, -weight, "curve")
    if o.corrupt:
        yield Signal("the target checks every token, so this changes no text", -2.5, "output")
    if healthy_acceptance(o) and (o.share is None or o.share > 0.98):
        yield Signal("acceptance is as expected", -1.2, "curve")
    for signal in moved(o, "graphs", 1.0, "graphs matter"):
        if signal.weight > 0:
            yield Signal("it depends on graphs, and this does not", -1.5, "contrast")
