"""The table of rules: a code, a cause, what is read, and the page that explains it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from outrider.doctor.observation import Observation
from outrider.doctor.rules import context, engine, features, measurement, traffic, weights
from outrider.doctor.rules.signal import Signal
from outrider.doctor.verdict import Cause
from outrider.errors import UnknownNameError

Depth = Literal["files", "counters", "ablation"]


@dataclass(frozen=True)
class Rule:
    """A cause and how it is looked for.

    Attributes:
        depth: The least depth at which the rule can tell.
        needs: What it reads, by the names of ``INPUTS``; any one is enough to look.
        signals: What it has to say of an observation.
    """

    code: str
    name: str
    cause: Cause
    depth: Depth
    needs: tuple[str, ...]
    signals: Callable[[Observation], Iterable[Signal]]

    @property
    def page(self) -> str:
        """The page, Markdown."""
        return files("outrider.doctor").joinpath("pages", f"{self.code}.md").read_text("utf-8")

    def lacks(self, o: Observation) -> str | None:
        """What would have to be known, where nothing that the rule reads is."""
        if any(INPUTS[need][1](o) for need in self.needs):
            return None
        return " or ".join(INPUTS[need][0] for need in self.needs)


INPUTS: Mapping[str, tuple[str, Callable[[Observation], bool]]] = {
    "counters": ("acceptance counters of one run", lambda o: o.reading.measured or bool(o.contrasts)),
    "positions": ("acceptance per position", lambda o: bool(o.reading.positions)),
    "expected": ("the acceptance length that was expected", lambda o: o.expected is not None),
    "speed": ("tokens a second with and without speculation", lambda o: o.reading.speed is not None),
    "hits": ("the prefix cache hit rate", lambda o: o.reading.hits is not None),
    "drafter_config": ("the drafter's config.json", lambda o: bool(o.evidence.drafter.config)),
    "target_config": ("the target's config.json", lambda o: bool(o.evidence.target.config)),
    "tensors": ("the drafter's tensor names and shapes", lambda o: bool(o.evidence.drafter.tensors)),
    "training": ("what is known of the drafter's training", lambda o: o.evidence.drafter.training is not None),
    "variant": ("whether the target is the base model", lambda o: o.evidence.target.variant is not None),
    "draft_length": ("the number of drafted tokens", lambda o: o.facts.drafted is not None),
    "template": (
        "chat template and thinking mode",
        lambda o: o.evidence.traffic.chat_template is not None or o.facts.thinking is not None,
    ),
    "temperature": ("the temperature", lambda o: o.evidence.traffic.temperature is not None),
    "settings": ("engine settings or the launch command", lambda o: bool(o.facts.settings or o.facts.command)),
    "precision": ("dtypes of target, drafter and cache", lambda o: bool(o.facts.low_bits) or bool(o.at("precision"))),
    "version": ("the engine and its version", lambda o: o.evidence.engine.version is not None),
    "hybrid": ("whether the target has recurrent layers", lambda o: o.facts.hybrid is not None),
    "output": (
        "whether the text equals the target's own",
        lambda o: o.evidence.output.corrupt is not None or o.evidence.output.differs_from_greedy is not None,
    ),
    "prefix": ("the same with prefix caching off", lambda o: bool(o.at("prefix"))),
    "context": ("acceptance by context length", lambda o: bool(o.at("context"))),
    "load": ("the same at concurrency 1 and more", lambda o: bool(o.at("concurrency"))),
    "graphs": ("the same without graphs", lambda o: bool(o.at("graphs"))),
    "error": ("an error message or log", lambda o: o.evidence.error is not None or o.evidence.log is not None),
}
"""What evidence can hold: in words, and whether it does."""

RULES: tuple[Rule, ...] = (
    Rule(
        "OR101", "metrics-definition", "metrics_definition", "counters", ("counters",), measurement.metrics_definition
    ),
    Rule(
        "OR201", "tap-offset", "layer_id_offset", "ablation", ("drafter_config", "expected"), features.layer_id_offset
    ),
    Rule("OR202", "wrong-taps", "wrong_layer_ids", "files", ("drafter_config", "tensors"), features.wrong_layer_ids),
    Rule("OR203", "mask-token", "mask_token", "files", ("drafter_config",), features.mask_token),
    Rule("OR204", "causality", "causal_flag", "files", ("drafter_config", "positions"), features.causal_flag),
    Rule("OR205", "window-ignored", "swa_ignored", "files", ("drafter_config", "context"), features.swa_ignored),
    Rule("OR301", "undertrained", "undertrained_drafter", "ablation", ("training",), weights.undertrained_drafter),
    Rule("OR302", "target-mismatch", "target_mismatch", "files", ("variant",), weights.target_mismatch),
    Rule(
        "OR303",
        "vocabulary",
        "tokenizer_or_vocab_mismatch",
        "files",
        ("drafter_config", "tensors", "error"),
        weights.tokenizer_or_vocab_mismatch,
    ),
    Rule(
        "OR304",
        "weights-missing",
        "draft_weights_missing",
        "files",
        ("tensors", "counters", "error"),
        weights.draft_weights_missing,
    ),
    Rule(
        "OR305",
        "head-not-shared",
        "lm_head_or_embedding_not_shared",
        "files",
        ("tensors", "counters"),
        weights.lm_head_or_embedding_not_shared,
    ),
    Rule("OR401", "context-lost", "context_kv_dropped", "counters", ("prefix", "context"), context.context_kv_dropped),
    Rule("OR402", "prefix-cache", "prefix_cache", "counters", ("hits", "prefix"), context.prefix_cache),
    Rule("OR403", "positions", "position_or_rope", "files", ("drafter_config", "context"), context.position_or_rope),
    Rule(
        "OR501",
        "template-or-thinking",
        "chat_template_or_thinking",
        "counters",
        ("template",),
        traffic.chat_template_or_thinking,
    ),
    Rule("OR502", "sampling", "sampling", "counters", ("temperature",), traffic.sampling),
    Rule(
        "OR503",
        "draft-length",
        "num_speculative_tokens",
        "counters",
        ("draft_length", "positions"),
        traffic.num_speculative_tokens,
    ),
    Rule(
        "OR504", "no-gain", "batch_or_model_size_no_gain", "counters", ("speed",), traffic.batch_or_model_size_no_gain
    ),
    Rule("OR601", "memory", "memory_or_kv_pressure", "counters", ("settings", "error"), engine.memory_or_kv_pressure),
    Rule(
        "OR602",
        "graph-or-kernel",
        "cuda_graph_or_kernel",
        "counters",
        ("graphs", "load", "error"),
        engine.cuda_graph_or_kernel,
    ),
    Rule(
        "OR603",
        "state-rollback",
        "hybrid_state_rollback",
        "counters",
        ("hybrid", "output"),
        engine.hybrid_state_rollback,
    ),
    Rule("OR604", "precision", "dtype_or_quantisation", "counters", ("precision",), engine.dtype_or_quantisation),
    Rule("OR605", "config-rejected", "config_rejected", "files", ("error",), engine.config_rejected),
    Rule("OR606", "version-defect", "version_defect", "files", ("version",), engine.version_defect),
    Rule("OR901", "other", "other", "counters", ("counters", "error"), engine.other),
)
"""Every rule, measurement first. A new one is a function, a line here and a page."""


def rule(code: str) -> Rule:
    """The rule of a code.

    Raises:
        UnknownNameError: there is none.
    """
    found = {r.code: r for r in RULES}
    if code.upper() not in found:
        raise UnknownNameError("rule", code, found)
    return found[code.upper()]
