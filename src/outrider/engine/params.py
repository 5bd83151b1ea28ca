"""What a request may ask of sampling, and which wishes contradict each other. Free of torch."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from outrider.errors import UsageError

GREEDY_ONLY_DEFAULTS = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


def _need(*, ok: bool, name: str, value: Any, expected: str) -> None:
    if not ok:
        raise UsageError(f"Sampling setting {name}={value!r}: expected {expected}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling settings of one request, checked when made.

    Processors apply in this order: logit bias, repetition, frequency and presence penalty, temperature,
    top-k, top-p, min-p (the order of Hugging Face Transformers). Repetition looks at prompt and output,
    frequency and presence at the output alone (as the OpenAI API defines them).

    Attributes:
        temperature: 0 means greedy.
        top_k: keep the k most probable words; 0 keeps all.
        top_p: keep the smallest set of words that holds this much probability.
        min_p: drop words below this share of the most probable word's probability.
        repetition_penalty: above 1 divides positive and multiplies negative logits of seen words.
        presence_penalty: subtracted once from the logit of each word of the output.
        frequency_penalty: subtracted once per occurrence.
        logit_bias: added to the logit of a token id.
        seed: same seed, same text, whatever the drafter; None draws a fresh one.
        stop: strings that end the text; not part of it.
        stop_token_ids: tokens that end the text, beside the model's own.
        max_tokens: at most this many new tokens.
        logprobs: None for none, else how many alternatives to report beside the chosen token.
        ignore_eos: go on past the model's own end-of-text tokens.

    Raises:
        UsageError: a value is out of range or two settings contradict each other.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    max_tokens: int = 256
    logprobs: int | None = None
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        """Check ranges, then contradictions."""
        self._check_ranges()
        self._check_greedy()

    def _check_ranges(self) -> None:
        for name, ok, expected in (
            ("temperature", 0 <= self.temperature <= 100, "a number from 0 to 100"),  # noqa: PLR2004 -- the range itself
            ("top_k", self.top_k >= 0, "a whole number of at least 0 (0 keeps all words)"),
            ("top_p", 0 < self.top_p <= 1, "a number above 0 and at most 1"),
            ("min_p", 0 <= self.min_p < 1, "a number from 0 to below 1"),
            ("repetition_penalty", 0 < self.repetition_penalty < float("inf"), "a number above 0"),
            ("presence_penalty", -2 <= self.presence_penalty <= 2, "a number from -2 to 2"),  # noqa: PLR2004 -- the range itself
            ("frequency_penalty", -2 <= self.frequency_penalty <= 2, "a number from -2 to 2"),  # noqa: PLR2004 -- the range itself
            ("logit_bias", all(map(isfinite, self.logit_bias.values())), "finite numbers"),
            (
                "seed",
                self.seed is None or 0 <= self.seed < 2**63,
                "a whole number from 0 to 2^63-1",
            ),
            ("stop", all(self.stop), "strings that are not empty"),
            ("max_tokens", self.max_tokens >= 1, "a whole number of at least 1"),
            ("logprobs", self.logprobs is None or 0 <= self.logprobs <= 20, "0 to 20"),  # noqa: PLR2004 -- the range itself
        ):
            _need(ok=ok, name=name, value=getattr(self, name), expected=expected)

    def _check_greedy(self) -> None:
        if self.temperature > 0:
            return
        idle = [name for name, default in GREEDY_ONLY_DEFAULTS.items() if getattr(self, name) != default]
        if idle:
            raise UsageError(
                f"Contradictory sampling settings: temperature 0 is greedy, so {' and '.join(idle)} would have "
                "no effect; set a temperature above 0 or drop them."
            )

    @property
    def greedy(self) -> bool:
        """Whether the most probable word is taken."""
        return self.temperature == 0

    @property
    def edits_logits(self) -> bool:
        """Whether bias or penalties change the logits before a word is chosen."""
        return bool(self.logit_bias) or self.penalises

    @property
    def penalises(self) -> bool:
        """Whether the logits depend on the words so far."""
        return self.repetition_penalty != 1.0 or self.presence_penalty != 0.0 or self.frequency_penalty != 0.0
