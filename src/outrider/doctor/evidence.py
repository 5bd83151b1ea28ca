"""What is known of a deployment that disappoints. Every key but ``schema`` may be left out: real reports are partial.

A fixed interface (docs/evidence.md). Numbers stand as the engine reports them; ``doctor.observation`` brings them to
one definition.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from outrider.adapters.methods import Method

Engine = Literal["vllm", "sglang", "llama.cpp", "mlx", "transformers", "tensorrt-llm", "outrider", "other"]
Variant = Literal["base", "fine_tuned", "merged", "abliterated", "quantised"]


class Part(BaseModel):
    """A part of the evidence; keys that it does not know are kept, so that nothing is lost, and named by the reader."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)


class EngineFacts(Part):
    """Which engine, and how it was started."""

    name: Engine | None = None
    version: str | None = None
    fork: bool = False
    command: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class TargetFacts(Part):
    """The model whose text is wanted."""

    name: str | None = None
    revision: str | None = None
    variant: Variant | None = None
    quantisation: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    hybrid: bool | None = None


class DrafterFacts(Part):
    """What proposes."""

    name: str | None = None
    revision: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    tensors: dict[str, list[int]] = Field(default_factory=dict)
    quantisation: str | None = None
    training: str | None = None
    made_config: bool = False


class SpeculationFacts(Part):
    """How much is drafted."""

    num_speculative_tokens: int | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class TrafficFacts(Part):
    """What is asked of the engine."""

    concurrency: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    temperature: float | None = None
    sampling: dict[str, Any] = Field(default_factory=dict)
    thinking: bool | None = None
    chat_template: bool | None = None
    workload: str | None = None


class Counters(Part):
    """One measurement, every number as the engine reports it."""

    rounds: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    accepted_per_position: list[float] = Field(default_factory=list)
    acceptance_rate: float | None = None
    mean_acceptance_length: float | None = None
    tokens_per_second: float | None = None
    baseline_tokens_per_second: float | None = None
    prefix_cache_hit_rate: float | None = None


class Expected(Part):
    """What the person expected, and why."""

    mean_acceptance_length: float | None = None
    source: str | None = None


class Measurement(Part):
    """The same measured under another condition; ``when`` names what differed."""

    when: dict[str, Any] = Field(default_factory=dict)
    counters: Counters = Field(default_factory=Counters)


class Output(Part):
    """What the text says."""

    differs_from_greedy: bool | None = None
    corrupt: bool | None = None


class Evidence(Part):
    """All that is known of one deployment."""

    schema_: Literal[1] = Field(1, alias="schema")
    method: Method | None = None
    engine: EngineFacts = Field(default_factory=EngineFacts)
    target: TargetFacts = Field(default_factory=TargetFacts)
    drafter: DrafterFacts = Field(default_factory=DrafterFacts)
    speculation: SpeculationFacts = Field(default_factory=SpeculationFacts)
    traffic: TrafficFacts = Field(default_factory=TrafficFacts)
    counters: Counters = Field(default_factory=Counters)
    expected: Expected = Field(default_factory=Expected)
    series: list[Measurement] = Field(default_factory=list)
    output: Output = Field(default_factory=Output)
    error: str | None = None
    log: str | None = None
    notes: str | None = None
