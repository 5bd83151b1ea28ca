"""What a run returns and what is written to disk: versioned records, each with its provenance.

Knows no engine: it is filled by the commands and by the benchmark, and read by the reports.
"""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from outrider.errors import UsageError
from outrider.provenance import Provenance


class Record(BaseModel):
    """Base of all records: strict about names, unchangeable, and JSON has no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class NearTie(Record):
    """Where a drafted text left the plain one because two logits were all but equal."""

    prompt: NonNegativeInt
    position: NonNegativeInt
    margin: float = Field(
        ge=0,
        description="How far the worse of the two tokens lies below the best logit; in sampling a distance in "
        "probability.",
    )
    plain_token: int
    drafted_token: int


class MethodResult(Record):
    """One way of decoding in a comparison; ratios are speeds over plain decoding's.

    ``texts_equal`` is None where texts cannot be compared: the drafter drew tokens from a law of its own.
    """

    drafter: str
    tokens: NonNegativeInt
    rounds: NonNegativeInt
    acceptance_length: float | None
    position_rates: list[float]
    tokens_per_second: float
    ratio: float
    ratio_low: float
    ratio_high: float
    texts_equal: bool | None
    near_ties: list[NearTie]


class DraftingResult(Record):
    """The draft model of a run, and how it was used."""

    model: str
    options: dict[str, Any] = Field(description="The draft options, as they were used.")


class Comparison(Record):
    """The same prompts with each method, plain decoding first: ``outrider compare --json``."""

    schema_version: Literal[1] = 1
    methods: list[MethodResult] = Field(min_length=1)
    drafting: DraftingResult | None = None
    provenance: Provenance


class TopLogprob(Record):
    """One of the likeliest tokens at a position."""

    id: int
    text: str
    logprob: float


class TokenResult(Record):
    """One token, and who decided it: a draft that was accepted, at some depth of its tree, or the target alone."""

    id: int
    text: str
    source: Literal["draft", "target"]
    depth: NonNegativeInt = Field(0, description="In the draft tree; 0 where the target decided.")
    logprob: float | None = None
    top_logprobs: list[TopLogprob] | None = None


class GenerationResult(Record):
    """One text with its counts: ``outrider generate --json``."""

    schema_version: Literal[1] = 1
    text: str
    finish_reason: str
    prompt_tokens: NonNegativeInt
    tokens: list[TokenResult]
    rounds: NonNegativeInt
    acceptance_length: float | None
    acceptance_rate: float | None
    position_rates: list[float]
    conditional_rates: list[float | None]
    seconds: float
    tokens_per_second: float
    model: str
    drafter: str
    drafting: DraftingResult | None = None
    dtype: str
    sampling: dict[str, Any] = Field(description="The sampling settings, as they were used.")
    provenance: Provenance


class Sample(Record):
    """One prompt, once, on one arm."""

    prompt: NonNegativeInt
    repeat: NonNegativeInt
    tokens: NonNegativeInt
    seconds: float = Field(gt=0)
    prefill_seconds: float = Field(ge=0)
    step_seconds: list[float] | None
    rounds: NonNegativeInt
    accepted: NonNegativeInt


class Ratio(Record):
    """Speed of an arm over the base's, with its bootstrap interval."""

    value: float
    low: float
    high: float
    unit: Literal["prompts", "repeats"] = Field(description="What was resampled.")


class ArmResult(Record):
    """One engine with its settings, over the whole workload.

    Attributes:
        about: What the worker said of itself: engine, version, dtype, threads.
        peak_bytes: Peak resident memory over what was there before the model was loaded; None where
            the system does not tell.
        ratios, decode_ratios: By category, and ``all``; over whole runs, and without the prefill.
        same_tokens: How many prompts gave the same tokens as on the base arm.
        first_differences: Per prompt the first position that differs from the base arm, or None.
    """

    name: str
    about: dict[str, str]
    load_seconds: float
    peak_bytes: int | None
    samples: list[Sample]
    tokens_per_second: float
    decode_tokens_per_second: float | None
    median_prefill_seconds: float
    median_step_seconds: float | None
    acceptance_length: float | None
    ratios: dict[str, Ratio]
    decode_ratios: dict[str, Ratio]
    same_tokens: NonNegativeInt
    first_differences: list[int | None]


class BenchResult(Record):
    """Arms measured side by side in one run; the first arm is the base of all ratios."""

    schema_version: Literal[1] = 1
    name: str
    max_tokens: int
    warmup: NonNegativeInt
    repeats: int
    categories: list[str] = Field(description="The category of each prompt.")
    prompt_tokens: list[int]
    arms: list[ArmResult] = Field(min_length=1)
    skipped: dict[str, str] = Field(description="Arms that did not run, and why.")
    provenance: Provenance

    def save(self, path: Path) -> None:
        """Write the record as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what ``save`` wrote.

        Raises:
            UsageError: when the file is missing or is no such record.
        """
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"Cannot read benchmark result {path}: {error.strerror}.") from error
        except (ValidationError, UnicodeDecodeError) as error:
            first = str(error).replace("\n", " ")[:200]
            raise UsageError(f"{path} is no benchmark result of schema version 1: {first}. Run it again.") from error
