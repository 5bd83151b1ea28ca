"""Rules on the drafter's weights, its training, and whether it belongs to this target."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

import re
from collections.abc import Iterator

from outrider.doctor.observation import Observation
from outrider.doctor.observation.words import own_name
from outrider.doctor.rules.shape import healthy_acceptance, moved
from outrider.doctor.rules.signal import Signal
from outrider.doctor.rules.words import said

BEGINNER = 1.47 / 5.97
"""Share of the length that a drafter keeps after five passes over 5,000 samples, of that of the published one."""
_SERIES = re.compile(
    r"(qwen|llama|gemma|glm|deepseek|gpt-oss|mimo|kimi|mistral|smollm)[-_ ]?v?(\d+(?:\.\d+)?)", re.IGNORECASE
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)b\b", re.IGNORECASE)


def undertrained_drafter(o: Observation) -> Iterator[Signal]:
    """The drafter has not converged, or was trained wrongly."""
    yield from said("undertrained_drafter", o)
    if o.facts.built_in and o.evidence.target.variant in (None, "base"):
        yield Signal("the heads were trained with the target", -1.5, "file")
    yield from moved(o, "workload", 1.4, "acceptance depends on the kind of text")
    if o.reading.nothing_accepted and _whole(o):
        yield Signal("exactly nothing is accepted, and its file holds every layer", 0.9, "curve")
    elif o.reading.nothing_accepted:
        yield Signal("a drafter that has learnt anything is right now and then", -0.6, "curve")
    elif o.reading.measured and (o.reading.low or (o.share or 1) < 0.6) and o.evidence.drafter.training:
        yield Signal("little is accepted, and the drafter's training is a matter of record", 0.8, "curve")
    if o.reading.measured and not o.reading.low and o.expected is None:
        yield Signal("acceptance is not low, and nobody expected more", -1.6, "curve")
    yield from _less_than_a_beginner(o)
    yield from _trained_better(o)


def _less_than_a_beginner(o: Observation) -> Iterator[Signal]:
    """An unfinished drafter still drafts; only one that was trained wrongly keeps nothing."""
    share = o.share
    wrongly = o.words.has(r"label|leak|accuracy|extract\w+|loss (was|is) tiny|validation", "training", "notes")
    if share is not None and share < BEGINNER and o.reading.collapsed and not wrongly:
        text = f"{share:.0%} of the length: 5,000 samples already give 1.47 of 5.97 (speculators documentation)"
        yield Signal(text + ", and previews of published drafters 5.1 of 8.3 (Luce-Org/lucebox)", -2.4, "size")


def _trained_better(o: Observation) -> Iterator[Signal]:
    """The same drafter does better under another engine or setting: then training is not what fails."""
    for dimension in ("engine", "graphs", "prefix", "backend", "precision"):
        for signal in moved(o, dimension, 1.0, "elsewhere"):
            if signal.weight > 0:
                yield Signal(f"the same drafter is well under another {dimension}", -1.8, "contrast")


def target_mismatch(o: Observation) -> Iterator[Signal]:
    """A fine-tuned, merged, abliterated or otherwise different target than the drafter was trained for."""
    yield from said("target_mismatch", o)
    variant = o.evidence.target.variant
    if variant in ("fine_tuned", "merged", "abliterated"):
        weight = 0.8 if o.facts.built_in or o.reading.nothing_accepted else 1.8
        yield Signal(f"the target is {variant.replace('_', '-')}", weight, "file")
    if (says := _unlike_names(o)) and not o.facts.built_in and o.evidence.method != "draft_model":
        yield Signal(says, 1.8, "file")
    yield from moved(o, "target", 2.5, "acceptance depends on the target")
    if variant == "base" and o.facts.built_in:
        yield Signal("the base target with its own heads", -2.0, "file")
    if healthy_acceptance(o):
        yield Signal("acceptance is as expected", -1.0, "curve")
    if o.reading.nothing_accepted:
        yield Signal("a mismatch leaves some words in common", -1.0, "curve")
    yield from _trained_better(o)


def _unlike_names(o: Observation) -> str | None:
    """The names speak of different models: another series, or another size."""
    target, drafter = own_name(o.evidence.target.name) or "", own_name(o.evidence.drafter.name) or ""
    first, second = _SERIES.search(target), _SERIES.search(drafter)
    if not first or not second:
        return None
    if (first.group(1).lower(), first.group(2)) != (second.group(1).lower(), second.group(2)):
        return f"a drafter named {drafter} for a target named {target}"
    sizes = _SIZE.search(target), _SIZE.search(drafter)
    if sizes[0] and sizes[1] and sizes[0].group(1) != sizes[1].group(1) and o.facts.feature_fed:
        return f"a drafter named {drafter} for a target named {target}"
    return None


def tokenizer_or_vocab_mismatch(o: Observation) -> Iterator[Signal]:
    """Vocabularies or their maps differ."""
    yield from said("tokenizer_or_vocab_mismatch", o)
    draft, target = o.facts.vocabulary
    names = o.evidence.drafter.tensors
    if draft and target and draft < target:
        yield Signal(f"a draft vocabulary of {draft} in a target of {target} needs a map", 0.8, "file")
        if len(names) > 8 and not any(n.endswith("d2t") for n in names):
            yield Signal("no d2t among the tensors", 3.5, "file", proof=True)
    own = o.facts.drafter.get("vocab_size")
    if isinstance(own, int) and isinstance(target, int) and own != target and o.evidence.method == "draft_model":
        yield Signal(f"vocabularies of {own} and {target}", 2.0, "file")
    if o.facts.built_in:
        yield Signal("built-in heads share the target's vocabulary", -1.5, "file")
    if healthy_acceptance(o):
        yield Signal("tokens are accepted as expected", -1.5, "curve")
    if o.corrupt:
        yield Signal("the target checks every token, so this changes no text", -1.5, "output")


def draft_weights_missing(o: Observation) -> Iterator[Signal]:
    """Tensors missing, skipped or dropped at load."""
    yield from said("draft_weights_missing", o)
    names = o.evidence.drafter.tensors
    if o.facts.built_in and names and not any(re.search(r"mtp|nextn", name) for name in names):
        yield Signal("heads are declared and no tensor of theirs is in the checkpoint", 3.5, "file", proof=True)
    depth, found = o.facts.drafter.get("num_hidden_layers"), _layers(names)
    if isinstance(depth, int) and 0 < found < depth:
        yield Signal(f"tensors of {found} layers, the config has {depth}", 3.5, "file", proof=True)
    elif _whole(o):
        yield Signal("the tensors of every layer are in its file", -1.5, "file")
    variant = o.evidence.target.variant
    if o.facts.built_in and variant in ("fine_tuned", "merged", "quantised", "abliterated"):
        yield Signal(f"a {variant.replace('_', '-')} export: built-in heads are often left out", 0.9, "file")
    if o.reading.nothing_accepted:
        yield Signal("exactly nothing is accepted, as with weights that were never filled", 1.5, "curve")
        if o.facts.built_in and not o.at("precision"):
            yield Signal("heads come from the target's checkpoint", 0.5, "file")
    elif o.reading.measured and not o.reading.low:
        yield Signal("some drafts are accepted", -2.0, "curve")
    yield from _comes_back(o)
    if o.corrupt:
        yield Signal("the target checks every token, so this changes no text", -1.5, "output")


def _comes_back(o: Observation) -> Iterator[Signal]:
    """Weights that are not there are missed at every length, load and text."""
    for dimension in ("context", "concurrency", "graphs", "prefix", "thinking", "sampling", "workload", "backend"):
        for signal in moved(o, dimension, 1.0, "moves"):
            if signal.weight > 0:
                yield Signal(f"acceptance moves with {dimension}, missing weights do not", -2.0, "contrast")
                return


def _whole(o: Observation) -> bool:
    """A drafter's own file has tensors of every layer that its config names."""
    depth = o.facts.drafter.get("num_hidden_layers")
    return isinstance(depth, int) and not o.facts.built_in and _layers(o.evidence.drafter.tensors) == depth


def _layers(names: dict[str, list[int]]) -> int:
    return len({match.group(1) for name in names if (match := re.search(r"layers\.(\d+)\.", name))})


def lm_head_or_embedding_not_shared(o: Observation) -> Iterator[Signal]:
    """The drafter's head or embedding is not the target's."""
    yield from said("lm_head_or_embedding_not_shared", o)
    names, (draft, target) = o.evidence.drafter.tensors, o.facts.vocabulary
    head = next((shape for name, shape in names.items() if name.endswith("lm_head.weight")), None)
    if head and draft and target and head[0] == draft < target:
        yield Signal(f"the drafter has a head of its own, {draft} rows of the target's {target}", 2.0, "file")
    if (o.reading.nothing_accepted or o.reading.collapsed) and not failure_is_elsewhere(o):
        yield Signal("next to nothing accepted, as with an empty or foreign head", 0.8, "curve")
    elif o.reading.measured and not o.reading.low:
        yield Signal("drafts are accepted", -2.0, "curve")
    yield from _comes_back(o)
    if o.corrupt:
        yield Signal("the target checks every token, so this changes no text", -1.5, "output")


def failure_is_elsewhere(o: Observation) -> bool:
    """A contrast already shows another switch to matter."""
    ratios = (c.accepted for d in ("graphs", "prefix", "precision", "backend") for c in o.at(d))
    return any(ratio is not None and ratio > 2 for ratio in ratios)
