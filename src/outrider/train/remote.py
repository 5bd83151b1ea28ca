"""Answers from a server that speaks OpenAI's chat completions, so many at once.

Texts come back as text. Each is turned into tokens by the target's own tokenizer, and kept only where these are
as many as the server counted, for the prompt and for the answer: else the server runs another model, another
template, or words cut in another way than they were drawn.
"""

import asyncio
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outrider.errors import UsageError
from outrider.text.tokenizer import Tokenizer
from outrider.train.texts import Text
from outrider.train.work import Item

if TYPE_CHECKING:
    import httpx2

PATIENCE = 4  # times that a request is sent before the server counts as down
WAIT_SECONDS = 1.0  # before the second time; twice as long each time after
TIMEOUT_SECONDS = 600.0
MOST_REFUSED = 64  # answers in a row that are no use: then no answer ever will be
BUSY = (429, 502, 503, 504)  # HTTP: come again


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where to ask, and how.

    Attributes:
        url: up to ``/v1``, or up to where ``/v1`` follows.
        model: its name there; None asks the server, which must have one alone.
        at_once: requests in flight.
        wait: seconds before a request is sent a second time.
    """

    url: str
    model: str | None = None
    at_once: int = 32
    wait: float = WAIT_SECONDS

    @property
    def base(self) -> str:
        """The address with ``/v1``."""
        url = self.url.rstrip("/")
        return url if url.endswith("/v1") else f"{url}/v1"


class RemoteWriter:
    """Has answers written by a server.

    Args:
        server: where.
        tokenizer: the target's.
        max_tokens: of an answer.
        top_k: of drawn answers; 0 keeps all words.
        top_p: likewise; 1 keeps all.
        thinking: told to the server's template; None leaves it alone.
    """

    def __init__(
        self,
        server: Server,
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        top_k: int = 0,
        top_p: float = 1.0,
        thinking: bool | None = None,
    ) -> None:
        self._server, self._tokenizer = server, tokenizer
        self._max_tokens, self._top_k, self._top_p, self._thinking = max_tokens, top_k, top_p, thinking
        self._stop = stop_token(tokenizer)
        self._refused = 0

    def write(self, items: Iterator[Item]) -> Generator[Text, None, None]:
        """Yield the answers as they come; who stops reading cancels what is in flight.

        Raises:
            UsageError: the server is down, has no such model, or none of its answers can be used.
        """
        with asyncio.Runner() as runner:
            asking = _Asking(self._server)
            try:
                model = runner.run(asking.model())
                pending: set[asyncio.Task[Text]] = set()
                while True:
                    done, pending = runner.run(self._wait(asking, model, items, pending))
                    if not done:
                        return
                    # All are looked at before one is raised: what nobody looked at would be reported by asyncio.
                    failed = [error for task in done if (error := task.exception()) is not None]
                    if failed:
                        raise failed[0]
                    yield from (self._checked(task.result()) for task in done)
            finally:
                runner.run(asking.close())

    async def _wait(
        self, asking: "_Asking", model: str, items: Iterator[Item], pending: set[asyncio.Task[Text]]
    ) -> tuple[set[asyncio.Task[Text]], set[asyncio.Task[Text]]]:
        """Have as many requests in flight as there may be, and wait for the first."""
        while len(pending) < self._server.at_once and (item := next(items, None)) is not None:
            pending.add(asyncio.create_task(self._answer(asking, model, item)))
        if not pending:
            return set(), set()
        return await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)

    def _checked(self, text: Text) -> Text:
        self._refused = self._refused + 1 if text.refusal else 0
        if self._refused >= MOST_REFUSED:
            raise UsageError(
                f"The last {MOST_REFUSED} answers of {self._server.base} were no use; the latest: {text.refusal}"
            )
        return text

    async def _answer(self, asking: "_Asking", model: str, item: Item) -> Text:
        response = await asking.post("/chat/completions", self._body(model, item))
        if response.is_success:
            return self._read(item, response)
        reason = " ".join(response.text.split())[:300]
        if response.is_client_error and response.status_code not in {401, 403, 404}:
            return _refused(item, f"the server refuses the request ({response.status_code}): {reason}")
        raise UsageError(f"{self._server.base} answers {response.status_code}: {reason or 'nothing more'}.")

    def _body(self, model: str, item: Item) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "messages": [dict(message) for message in item.prompt.messages],
            "max_tokens": self._max_tokens,
            "temperature": item.temperature,
            "seed": item.seed % (1 << 31),
        }
        if item.temperature > 0:
            # Servers fill what is left out from the model's own generation config.
            body |= {"top_p": self._top_p, "top_k": self._top_k or -1}
        if self._thinking is not None:
            body["chat_template_kwargs"] = {"enable_thinking": self._thinking}
        return body

    def _read(self, item: Item, response: "httpx2.Response") -> Text:
        try:
            answer = response.json()
            choice, usage = answer["choices"][0], answer["usage"]
            message, words = choice["message"], choice["message"]["content"]
            counted = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
        except (KeyError, IndexError, TypeError, ValueError):
            return _refused(item, "expected choices with a message and usage with token counts; found other keys.")
        if message.get("reasoning_content") or message.get("reasoning") or not isinstance(words, str):
            return _refused(item, "the server takes the reasoning or tool calls out of the text: start it without.")
        return self._tokens(item, words, counted, ended=choice.get("finish_reason") == "stop")

    def _tokens(self, item: Item, words: str, counted: tuple[int, int], *, ended: bool) -> Text:
        """Turn an answer into the tokens it was made of, or say that they cannot be had."""
        prompt = len(item.prompt.tokens)
        if counted[0] != prompt:
            return _refused(
                item,
                f"the server reads the prompt as {counted[0]} tokens, the target's template makes {prompt}: another "
                "model or another template.",
            )
        ids = self._tokenizer.encode(words, add_special=False)
        # Some servers count the stop token, some do not.
        expected = {len(ids), len(ids) + 1} if ended else {len(ids)}
        if counted[1] not in expected or self._tokenizer.decode(ids, skip_special=False) != words:
            return _refused(
                item, f"the server drew {counted[1]} tokens, the text makes {len(ids)}: it cannot be had back exactly."
            )
        tokens = [*ids, self._stop] if ended and self._stop is not None else ids
        return Text(item, np.array(tokens, dtype=np.int32), ended)


def stop_token(tokenizer: Tokenizer) -> int | None:
    """Return the token that ends a turn, which servers leave out of the text: the tokenizer's end token."""
    named = None if tokenizer.eos_token is None else tokenizer.token_id(tokenizer.eos_token)
    return named if named is not None else min(tokenizer.stop_ids, default=None)


def _refused(item: Item, reason: str) -> Text:
    return Text(item, np.zeros(0, dtype=np.int32), ended=False, refusal=reason)


class _Asking:
    """One connection to the server, with patience."""

    def __init__(self, server: Server) -> None:
        import httpx2

        self._server = server
        limits = httpx2.Limits(max_connections=server.at_once)
        self._client = httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, limits=limits)

    async def close(self) -> None:
        await self._client.aclose()

    async def model(self) -> str:
        """Return the name of the model there, asking where none was given."""
        if self._server.model is not None:
            return self._server.model
        response = await self._send("GET", "/models", None)
        try:
            names = [str(entry["id"]) for entry in response.json()["data"]]
        except (KeyError, TypeError, ValueError):
            names = []
        if len(names) != 1:
            raise UsageError(
                f"{self._server.base} lists {len(names)} models{': ' if names else ''}{', '.join(names[:8])}; name one "
                "with --server-model."
            )
        return names[0]

    async def post(self, path: str, body: Mapping[str, Any]) -> "httpx2.Response":
        return await self._send("POST", path, body)

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> "httpx2.Response":
        import httpx2

        wait, reason = self._server.wait, ""
        for attempt in range(PATIENCE):
            if attempt:
                await asyncio.sleep(wait)
                wait *= 2
            try:
                response = await self._client.request(method, self._server.base + path, json=body)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                reason = str(error) or type(error).__name__
            else:
                if response.status_code not in BUSY:
                    return response
                reason = f"HTTP {response.status_code}"
        raise UsageError(
            f"The server at {self._server.base} does not answer ({reason}), asked {PATIENCE} times. Start it, or check "
            "--server; the same command then goes on after the last complete shard."
        )
