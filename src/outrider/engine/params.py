"""What a request may ask of sampling, and which wishes contradict each other. Free of torch."""

from dataclasses import dataclass, field
from typing import Any

from outrider.errors import UsageError

# What only sampling uses, with the value that means "not used".
SAMPLING_ONLY = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
COLDEST = 1e-4  # below, logits divided by the temperature leave the range of floats
NUMBERS = {
    "temperature": (0, 100),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0.01, 100),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
WHOLE = {"top_k": (0, 2**31), "max_tokens": (1, 2**31)}


def _number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _tuple_of(kind: type, values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, kind) for value in values)


def _need(ok: bool, name: str, value: Any, expected: str) -> None:  # noqa: FBT001 -- reads as a sentence
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
        seed: same seed, same text, whatever the drafter, but for drafters that draw (docs/exactness.md); None draws a
            fresh one.
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
        for name, (low, high) in NUMBERS.items():
            _need(_number(getattr(self, name), low, high), name, getattr(self, name), f"a number from {low} to {high}")
        for name, (low, high) in WHOLE.items():
            _need(_whole(getattr(self, name), low, high), name, getattr(self, name), f"a whole number, {low} to {high}")
        for name, value in (("seed", self.seed), ("logprobs", self.logprobs)):
            high = 2**63 - 1 if name == "seed" else 20
            _need(value is None or _whole(value, 0, high), name, value, f"None or a whole number, 0 to {high}")
        _need(
            self.temperature == 0 or self.temperature >= COLDEST,
            "temperature",
            self.temperature,
            "0 (greedy) or 1e-4 and more",
        )
        _need(self.top_p > 0, "top_p", self.top_p, "a number above 0 and at most 1")
        _need(self.min_p < 1, "min_p", self.min_p, "a number from 0 to below 1")
        _need(_tuple_of(str, self.stop) and all(self.stop), "stop", self.stop, "a tuple of strings that are not empty")
        _need(_tuple_of(int, self.stop_token_ids), "stop_token_ids", self.stop_token_ids, "a tuple of token ids")
        bias = self.logit_bias.items()
        _need(
            all(_whole(token, 0, 2**31) and _number(value, -1e4, 1e4) for token, value in bias),
            "logit_bias",
            self.logit_bias,
            "token ids with finite numbers from -10000 to 10000",
        )

    def _check_greedy(self) -> None:
        if self.temperature > 0:
            return
        idle = [name for name, default in SAMPLING_ONLY.items() if getattr(self, name) != default]
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
