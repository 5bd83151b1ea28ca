"""Asks an OpenAI-compatible server for texts with log-probabilities. Reads; every request has a time limit."""

import json
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from outrider.errors import UsageError

TOP = 5  # log-probabilities a token: as many as every server gives
SECONDS = 120.0
# Servers cut the law by default (llama.cpp), or as the model's generation_config.json says (vLLM, SGLang).
WHOLE_LAW = {"top_p": 1.0, "top_k": 1 << 20, "min_p": 0.0, "repetition_penalty": 1.0}


class RefusedError(UsageError):
    """The server answers, and says no."""


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
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(f"{url!r}: expected the address of a server, e.g. http://localhost:8000.")
        self.url = url.rstrip("/").removesuffix("/v1")
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
                f"{self.url}/v1/completions: expected a completion with choices, found {_cut(answer)}."
            ) from error

    def _first_model(self) -> str:
        found = self._get("/v1/models", None)
        try:
            return str(found["data"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            raise UsageError(f"{self.url}/v1/models: expected a list of models, found {_cut(found)}.") from error

    def _get(self, path: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, headers={"Content-Type": "application/json"})  # noqa: S310 -- checked
        try:
            with urlopen(request, timeout=self._seconds) as response:  # noqa: S310 -- http or https, checked above
                return json.loads(response.read())
        except HTTPError as error:
            with error:
                said = error.read(300).decode(errors="replace")
            raise RefusedError(f"{self.url}{path} answers {error.code}: {_cut(said)}.") from error
        except TimeoutError as error:
            raise self._late(path) from error
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._late(path) from error
            raise UsageError(f"Cannot reach {self.url}: {error.reason}. Is the server up?") from error
        except (OSError, HTTPException, ValueError) as error:
            raise UsageError(f"{self.url}{path}: expected JSON, found {_cut(error)}.") from error

    def _late(self, path: str) -> UsageError:
        return UsageError(f"{self.url}{path} gave no answer within {self._seconds:g} s; it hangs or is overloaded.")


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


def _cut(found: Any) -> str:
    text = " ".join(str(found).split())
    return text if len(text) <= 160 else text[:157] + "..."  # noqa: PLR2004 -- of a line
