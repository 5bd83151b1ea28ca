"""What the doctor says: findings, most likely first, and what would tell more. A fixed interface (docs/evidence.md)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Cause = Literal[
    "swa_ignored", "causal_flag", "layer_id_offset", "wrong_layer_ids", "undertrained_drafter", "target_mismatch",
    "tokenizer_or_vocab_mismatch", "draft_weights_missing", "lm_head_or_embedding_not_shared", "mask_token",
    "context_kv_dropped", "prefix_cache", "position_or_rope", "chat_template_or_thinking", "sampling",
    "num_speculative_tokens", "batch_or_model_size_no_gain", "memory_or_kv_pressure", "cuda_graph_or_kernel",
    "hybrid_state_rollback", "dtype_or_quantisation", "config_rejected", "version_defect", "metrics_definition",
    "other",
]  # fmt: skip
Standing = Literal["confirmed", "likely", "possible", "refuted"]


class Effect(BaseModel):
    """What a cause does, in tokens a round: negative where it costs."""

    model_config = ConfigDict(extra="forbid")
    tokens_per_round: tuple[float, float] | None = None


class Finding(BaseModel):
    """A cause, how sure it is, and what it costs.

    Attributes:
        confidence: a probability, and meant as one.
        evidence: what speaks for it.
        against: what speaks against it.
        remedy: what to do, most promising first.
    """

    code: str
    cause: Cause
    standing: Standing
    confidence: float = Field(ge=0, le=1)
    effect: Effect = Field(default_factory=Effect)
    evidence: list[str] = Field(default_factory=list)
    against: list[str] = Field(default_factory=list)
    remedy: list[str] = Field(default_factory=list)


class NotExamined(BaseModel):
    """A rule that lacked what it reads."""

    code: str
    needs: str


class Way(BaseModel):
    """A way forward with its trade-off.

    Attributes:
        tokens_per_round, tokens_per_second: what it should give, where the evidence allows.
        command: what to run.
    """

    name: str
    tokens_per_round: tuple[float, float] | None = None
    tokens_per_second: tuple[float, float] | None = None
    effort: Literal["minutes", "hours", "days"]
    risk: str
    command: str | None = None


class Verdict(BaseModel):
    """The whole of it.

    Attributes:
        notes: what of the evidence could not be read, and where sources contradict each other.
    """

    schema_: Literal[1] = Field(1, alias="schema")
    findings: list[Finding] = Field(default_factory=list)
    not_examined: list[NotExamined] = Field(default_factory=list)
    next: list[str] = Field(default_factory=list)
    summary: str
    options: list[Way] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
