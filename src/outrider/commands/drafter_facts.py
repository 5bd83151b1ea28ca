"""What the headers of a drafter say, whether it fits a target, and how engines run it. Needs no torch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from outrider.checkpoint import Checkpoint
from outrider.checkpoint.card import training_notes
from outrider.checkpoint.known import KNOWN
from outrider.commands.engines import Case, EngineAdvice, advise
from outrider.commands.model_facts import MemoryNeed, memory_needs, rope_text, stored_bytes
from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.dflash.formats import Examined, Problem, Target, fit, remaining
from outrider.models.loading import decoder_config
from outrider.results import Record

COARSE = ("Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K")


class LayerFacts(Record):
    """Who sees whom in one layer; window null where all context is seen."""

    layer: int
    window: int | None
    causal: bool


class ProblemFacts(Record):
    """One thing that keeps the drafter from running as it was trained.

    Attributes:
        of: what it was found in: the drafter alone, or the pair with the target.
        can_be_allowed: whether ``--allow`` helps.
        allowed: whether it was given.
    """

    key: str
    message: str
    of: str
    can_be_allowed: bool
    allowed: bool


class DrafterShape(Record):
    """What the drafter is.

    Attributes:
        taps: in each convention, under its name; the first is the output of a block, counted from 0.
        tokens: proposed by one block.
        own: what it brings instead of sharing the target's.
        settings: scales and variants that are not the usual ones.
    """

    kind: str
    layers: list[LayerFacts]
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    rope: str
    block: int
    tokens: int
    anchor_predicts: bool
    mask: str
    taps: dict[str, list[int]]
    target_layers: int | None
    own: list[str]
    settings: list[str]
    parameters: int
    memory: list[MemoryNeed]


class DrafterFacts(Record):
    """One drafter: ``outrider inspect --json``.

    Attributes:
        shape: null where keys without which there is none are missing or impossible.
        fits: whether it drafts for the target; null without a target or a shape.
        runs: whether Outrider runs it, with what is allowed.
    """

    name: str
    origin: str
    path: str
    format: str
    stored: dict[str, int]
    shape: DrafterShape | None
    card: list[str]
    notes: list[str]
    problems: list[ProblemFacts]
    target: str | None
    fits: bool | None
    runs: bool
    engines: list[EngineAdvice]


@dataclass(frozen=True, slots=True)
class TargetSizes:
    """What a drafter depends on, of a target whose family is not run here."""

    hidden_size: int
    num_layers: int
    vocab_size: int
    max_positions: int


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A target as it was named, its kind, and its sizes."""

    name: str
    kind: str | None
    sizes: Target


def named_target(name: str, raw: dict[str, Any]) -> NamedTarget:
    """Return the sizes of a target, also where its family is not run here.

    Raises:
        CheckpointError: the config does not say them.
    """
    try:
        sizes: Target = decoder_config(raw)
    except UnsupportedError:
        sizes = _sizes(name, raw)
    return NamedTarget(name, str(raw["model_type"]) if raw.get("model_type") else None, sizes)


def _sizes(name: str, raw: dict[str, Any]) -> TargetSizes:
    inner = raw.get("text_config")
    held = inner if isinstance(inner, dict) else raw
    keys = ("hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings")
    found = [held.get(key) for key in keys]
    wrong = [key for key, value in zip(keys, found, strict=True) if not isinstance(value, int) or value < 1]
    if wrong:
        raise CheckpointError(
            f"{name}: expected whole numbers of at least 1 for {', '.join(wrong)} in its config.json."
        )
    return TargetSizes(*(int(value) for value in found if value is not None))


def drafter_facts(
    name: str, found: Examined, *, allow: Sequence[str] = (), target: NamedTarget | None = None
) -> DrafterFacts:
    """Collect the facts.

    Args:
        name: as the drafter was named.
        found: its headers.
        allow: keys of problems to pass over.
        target: what it shall draft for.
    """
    config, checkpoint = found.config, found.checkpoint
    misfits = _misfits(found, config, target)
    left = remaining((*found.problems, *misfits), allow)
    fits = None if config is None or target is None else not remaining(misfits, allow)
    return DrafterFacts(
        name=name,
        origin=checkpoint.source.origin,
        path=str(checkpoint.source.path),
        format=found.format,
        stored=stored_bytes(checkpoint),
        shape=None if config is None else _shape(config),
        card=training_notes(checkpoint),
        notes=[*found.notes, *_precision(config, checkpoint)],
        problems=_problems(found.problems, misfits, allow),
        target=None if target is None else target.name,
        fits=fits,
        runs=not left,
        engines=[] if config is None else advise(_case(name, found, config, target if fits else None)),
    )


def _case(name: str, found: Examined, config: DFlashConfig, target: NamedTarget | None) -> Case:
    case = Case(config, found.checkpoint.config or found.checkpoint.metadata, name, doubtful=bool(found.problems))
    if target is None:
        return case
    known = KNOWN.get(target.name)  # other engines know its name on the hub alone
    return replace(case, target=known.hub if known else target.name, target_kind=target.kind)


def _misfits(found: Examined, config: DFlashConfig | None, target: NamedTarget | None) -> tuple[Problem, ...]:
    """Return what keeps the pair apart, without what the drafter alone says already."""
    if config is None or target is None:
        return ()
    return tuple(problem for problem in fit(config, target.sizes) if problem not in found.problems)


def _problems(own: Sequence[Problem], misfits: Sequence[Problem], allow: Sequence[str]) -> list[ProblemFacts]:
    both = [("drafter", problem) for problem in own] + [("pair", problem) for problem in misfits]
    both.sort(key=lambda one: not one[1].fatal)
    return [
        ProblemFacts(
            key=problem.key,
            message=problem.message,
            of=where,
            can_be_allowed=not problem.fatal,
            allowed=not problem.fatal and problem.key in allow,
        )
        for where, problem in both
    ]


def _shape(config: DFlashConfig) -> DrafterShape:
    parameters = sum(prod(shape) for name, shape in config.tensor_shapes().items() if name != "d2t")
    return DrafterShape(
        kind=config.kind,
        layers=[_layer(number, mask) for number, mask in enumerate(config.layers)],
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        heads=config.num_heads,
        kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        vocabulary=config.vocab_size,
        context=config.max_positions,
        rope=rope_text(config.rope),
        block=config.block_size,
        tokens=config.max_tokens,
        anchor_predicts=config.anchor_predicts,
        mask="a vector of its own" if config.mask_embedding else f"token {config.mask_token}",
        taps=_taps(config),
        target_layers=config.num_target_layers,
        own=_own(config),
        settings=_settings(config),
        parameters=parameters,
        memory=memory_needs(parameters, 2 * config.num_layers * config.num_kv_heads * config.head_dim),
    )


def _layer(number: int, mask: LayerMask) -> LayerFacts:
    return LayerFacts(layer=number, window=mask.window, causal=mask.causal)


def _taps(config: DFlashConfig) -> dict[str, list[int]]:
    taps, shifted = list(config.taps), [tap + 1 for tap in config.taps]
    return {
        "z-lab, SpecForge, DeepSpec, ModelOpt, NeMo, SGLang, MLX, MAX: output of block": taps,
        "Transformers hidden_states": shifted,
        "speculators aux_hidden_state_layer_ids": shifted,
        "vLLM auxiliary layers, onnxruntime-genai: input of block": shifted,
        "llama.cpp dflash.target_layers": shifted,
    }


def _own(config: DFlashConfig) -> list[str]:
    words = f"head of {config.draft_vocab_size or config.vocab_size} words"
    parts = {"embedding table": config.own_embedding, words: config.own_head, "mask embedding": config.mask_embedding}
    return [name for name, there in parts.items() if there]


def _settings(config: DFlashConfig) -> list[str]:
    numbers = {
        "embeddings times": config.embedding_scale,
        "logits times": config.output_multiplier,
        "attention values times": config.value_scale,
    }
    flags = {"attention sinks": config.sinks, "biases in attention": config.biases}
    scales = [f"{name} {value:g}" for name, value in numbers.items() if value != 1]
    cap = [] if config.soft_cap is None else [f"logits capped at {config.soft_cap:g}"]
    return [*scales, *cap, *(name for name, on in flags.items() if on), *_heads(config)]


def _heads(config: DFlashConfig) -> list[str]:
    lines = []
    if config.convolution is not None:
        lines.append(f"convolution over {config.convolution.taps} slots, groups of {config.convolution.group}")
    if config.selector is not None:
        lines.append(f"selector of rank {config.selector.rank} over {config.selector.top_k} candidates")
    if config.markov is not None:
        lines.append(f"{config.markov.kind} Markov head of rank {config.markov.rank}")
    if config.confidence is not None:
        lines.append("confidence head")
    return lines


def _precision(config: DFlashConfig | None, checkpoint: Checkpoint) -> list[str]:
    """What storage is known to cost acceptance."""
    kinds = Counter(info.dtype for info in checkpoint.tensors.values())
    coarse = [kind for kind in COARSE if kinds[kind]]
    slides = config is not None and any(mask.window for mask in config.layers)
    notes = []
    if kinds["F16"]:
        notes.append("Weights are stored as F16; features of Qwen3 overflow it, so run it in bfloat16 or float32.")
    if coarse and slides:
        notes.append(f"Weights are stored as {', '.join(coarse)}; drafters with windows lose acceptance below Q8.")
    return notes
