"""Asks an OpenAI-compatible server for texts with log-probabilities. Reads; every request has a time limit."""

from dataclasses import dataclass
from typing import Any

from outrider.doctor.web import RefusedError, base, cut, get_json
from outrider.errors import UsageError

__all__ = ["Answer", "RefusedError", "Server"]
TOP = 5  # log-probabilities a token: as many as every server gives
SECONDS = 120.0
# Servers cut the law by default (llama.cpp), or as the model's generation_config.json says (vLLM, SGLang).
WHOLE_LAW = {"top_p": 1.0, "top_k": 1 << 20, "min_p": 0.0, "repetition_penalty": 1.0}


@dataclass(frozen=True, slots=True)
class Answer:
    """One text.

    Attributes:
        tokens: its words; empty where the server sends none.
        logprobs: of each, in nats.
        tops: of each the likeliest words.
    """

    text: str
    tokens: tuple[str, ...] = ()
    logprobs: tuple[float, ...] = ()
    tops: tuple[dict[str, float], ...] = ()


class Server:
    """One server."""

    def __init__(self, url: str, *, seconds: float = SECONDS) -> None:
        self.url = base(url)
        self._seconds = seconds
        self.model = self._first_model()

    def ask(self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int = 0, tops: int = TOP) -> Answer:
        """Return a continuation.

        Raises:
            RefusedError: the server says no.
            UsageError: no answer in time, or something that is no completion.
        """
        body = {"model": self.model, "prompt": prompt, "max_tokens": max_tokens, "temperature": temperature}
        answer = self._get("/v1/completions", body | WHOLE_LAW | {"seed": seed, "logprobs": tops})
        try:
            choice = answer["choices"][0]
            return _answer(choice["text"], choice.get("logprobs"))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise UsageError(
                f"{self.url}/v1/completions: expected a completion with choices, found {cut(answer)}."
            ) from error

    def _first_model(self) -> str:
        found = self._get("/v1/models", None)
        try:
            return str(found["data"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            raise UsageError(f"{self.url}/v1/models: expected a list of models, found {cut(found)}.") from error

    def _get(self, path: str, body: dict[str, Any] | None) -> Any:
        return get_json(self.url + path, seconds=self._seconds, body=body)


def _answer(text: str, found: Any) -> Answer:
    """Read both ways in which servers write log-probabilities: OpenAI's older lists, and one object a token."""
    if not found:
        return Answer(str(text))
    if found.get("content") is not None:
        rows = found["content"]
        tops = tuple({str(top["token"]): float(top["logprob"]) for top in row["top_logprobs"]} for row in rows)
        return Answer(
            str(text), tuple(str(row["token"]) for row in rows), tuple(float(row["logprob"]) for row in rows), tops
        )
    tokens = tuple(map(str, found["tokens"]))
    logprobs = tuple(float(value) for value in found["token_logprobs"])
    tops = tuple(
        {str(word): float(value) for word, value in (top or {}).items()} for top in found["top_logprobs"] or ()
    )
    if not len(tokens) == len(logprobs) == len(tops):
        return Answer(str(text))
    return Answer(str(text), tokens, logprobs, tops)
