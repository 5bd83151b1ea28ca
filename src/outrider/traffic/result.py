"""What a benchmark of servers writes: every request, every count, and what follows from them."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, NonNegativeInt, ValidationError

from outrider.errors import UsageError
from outrider.provenance import Provenance
from outrider.results import Ratio, Record


class Asked(Record):
    """One request.

    Attributes:
        prompt: its place in the workload.
        start: seconds after the cell began.
        seconds: until its end.
        ttft_s: until the first token.
        tokens: of the answer, as the server counts them.
        prompt_tokens: likewise.
        largest_gap_s: between two pieces of the answer.
        words, distinct: of the answer's four-word runs, and how many of them differ.
        digest: of the text, to tell whether texts are equal.
    """

    prompt: NonNegativeInt
    start: float
    seconds: float = Field(gt=0)
    ttft_s: float = Field(ge=0)
    tokens: NonNegativeInt
    prompt_tokens: NonNegativeInt | None
    largest_gap_s: float
    words: NonNegativeInt
    distinct: NonNegativeInt
    digest: str


class Cell(Record):
    """One arm at one concurrency, once.

    Attributes:
        seconds: from the first request to the last answer.
        rounds, drafted, accepted, per_position: what the server counted meanwhile; null where it does not.
        length: what it says itself, where it counts nothing.
        failures: requests without an answer, and why.
    """

    arm: str
    concurrency: int
    repeat: NonNegativeInt
    seconds: float
    asked: list[Asked]
    rounds: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    per_position: list[float] = Field(default_factory=list)
    length: float | None = None
    failures: list[str] = Field(default_factory=list)


class ArmAbout(Record):
    """One way of decoding on an engine."""

    name: str
    engine: str
    version: str | None
    method: str
    draft_length: int | None
    command: str


class Row(Record):
    """One arm at one concurrency, over all repeats.

    Attributes:
        tokens_per_second: of all requests together; low and high over the repeats.
        request_speed: tokens a second of a request, pooled.
        ttft_s, ttft_p95_s, tpot_s, tpot_p95_s: to the first token, and for each after it; medians and 95th percentiles.
        acceptance_length, acceptance_rate, position_rates: by the glossary, from the server's counts.
        speedup: request speed over the base arm's at the same concurrency, prompts resampled; null for the base.
        break_even: acceptance length from which drafting pays here: the length over the speed-up.
        same_texts: answers equal to the base arm's, of so many compared; greedy only.
        diversity: distinct runs of four words over all of them: texts that loop flatter every drafter.
    """

    arm: str
    concurrency: int
    requests: NonNegativeInt
    failed: NonNegativeInt
    tokens_per_second: tuple[float, float, float]
    request_speed: float
    ttft_s: float
    ttft_p95_s: float
    tpot_s: float | None
    tpot_p95_s: float | None
    acceptance_length: float | None
    acceptance_rate: float | None
    position_rates: list[float]
    speedup: Ratio | None
    break_even: float | None
    same_texts: tuple[int, int] | None
    diversity: float | None


class TrafficResult(Record):
    """Arms on one workload: ``outrider bench run``. The first arm is the base."""

    schema_version: Literal[1] = 1
    name: str
    target: str
    max_tokens: int
    temperature: float
    rate: float | None
    chat: bool
    prefix_caching: bool
    warmup: NonNegativeInt
    repeats: int
    categories: list[str]
    arms: list[ArmAbout]
    cells: list[Cell]
    rows: list[Row]
    failed: dict[str, str] = Field(description="Arms that broke off, and why; what they measured before is kept.")
    notes: list[str]
    provenance: Provenance

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        part = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise UsageError(f"Cannot write {path}: {error.strerror}; name another place.") from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what ``save`` wrote.

        Raises:
            UsageError: the file is missing or no such record.
        """
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"Cannot read {path}: {error.strerror}.") from error
        except (ValidationError, UnicodeDecodeError) as error:
            first = " ".join(str(error).split())[:160]
            raise UsageError(f"{path} is no result of outrider bench run: {first}") from error
