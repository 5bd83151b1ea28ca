"""What a repair found, key by key, as it is printed and written: the value, where it comes from, and how sure it is."""

from typing import Any, Literal

from pydantic import Field, NonNegativeInt

from outrider.models.dflash.config import DFlashConfig
from outrider.provenance import Provenance
from outrider.repair.infer import Inferred
from outrider.repair.judge import Judge
from outrider.repair.weigh import Finding
from outrider.results import Record

Origin = Literal["tensors", "measured", "undetermined", "given"]


class Tried(Record):
    """One answer to a question, measured."""

    value: Any
    length: float = Field(description="1 + mean accepted over the anchors.")
    log_prob: float = Field(description="Mean log-probability of the right words, in nats.")


class Row(Record):
    """One key of the config.

    Attributes:
        origin: ``undetermined`` values are defaults, or the best of several that cannot be told apart.
        best, second: the two best answers where some were tried.
        difference, low, high: by how many nats a slot the best one is better, with a 99 % interval; for block_size, and
            for it alone, nats a block.
    """

    key: str
    value: Any
    origin: Origin
    best: Tried | None = None
    second: Tried | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


class Repair(Record):
    """What ``outrider repair`` found."""

    schema_version: Literal[1] = 1
    drafter: str
    target: str
    works: bool = Field(description="Whether any reading makes the pair work; otherwise nothing is written.")
    rows: list[Row]
    acceptance_length: float = Field(description="tau of greedy decoding with whole blocks, as the config is written.")
    acceptance_low: float
    acceptance_high: float
    position_rates: list[float]
    texts: NonNegativeInt
    tokens: NonNegativeInt = Field(description="Written by the target, in all texts.")
    anchors: NonNegativeInt = Field(description="Anchors of each comparison.")
    readings: NonNegativeInt = Field(description="Replays made.")
    blocks: NonNegativeInt = Field(description="Blocks drafted in them.")
    seconds: float
    config: dict[str, Any] = Field(description="The config.json.")
    notes: list[str]
    provenance: Provenance


def tensor_rows(inferred: Inferred, *, mask_embedding: bool) -> list[Row]:
    """Return what the tensors determine."""
    convolution, markov, confidence = inferred.convolution, inferred.markov, inferred.confidence
    values = {
        "kind": inferred.kind,
        "num_hidden_layers": inferred.num_layers,
        "hidden_size": inferred.hidden_size,
        "intermediate_size": inferred.intermediate_size,
        "num_attention_heads": inferred.num_heads,
        "num_key_value_heads": inferred.num_kv_heads,
        "head_dim": inferred.head_dim,
        "vocab_size": inferred.vocab_size,
        "number of taps": inferred.num_taps,
        "own embedding": inferred.own_embedding or None,
        "own head": inferred.own_head or None,
        "draft_vocab_size": inferred.draft_vocab_size,
        "mask embedding": mask_embedding or None,
        "attention_bias": inferred.biases or None,
        "attention_sink_bias": inferred.sinks or None,
        "conv_kernel_size": convolution and convolution.taps,
        "conv_group_size": convolution and convolution.group,
        "selector_rank": inferred.selector_rank,
        "markov_rank": markov and markov.rank,
        "markov_head_type": markov and markov.kind,
        "confidence_head_with_markov": confidence and confidence.with_markov,
    }
    return [Row(key=key, value=value, origin="tensors") for key, value in values.items() if value is not None]


def found_row(finding: Finding, judge: Judge, final: DFlashConfig) -> Row:
    """Return what experiment says of one key."""
    question, difference = finding.question, finding.difference
    return Row(
        key=question.key,
        value=question.value(final),
        origin="measured" if finding.measured else "undetermined",
        best=_tried(finding, judge, finding.best),
        second=None if finding.rival is None else _tried(finding, judge, finding.rival),
        difference=None if difference is None else difference.value,
        low=None if difference is None else difference.low,
        high=None if difference is None else difference.high,
        note=_note(finding, final),
    )


def _tried(finding: Finding, judge: Judge, config: DFlashConfig) -> Tried:
    score = judge.score(config)
    return Tried(value=finding.question.value(config), length=score.length, log_prob=score.log_prob)


def _note(finding: Finding, final: DFlashConfig) -> str:
    if finding.measured:
        return ""
    if finding.rival is None:
        return "nothing to compare"
    kept = str(finding.question.value(final)) == str(finding.question.default)
    return "default kept" if kept else "the default is clearly worse, alone or with the others: the best found"
