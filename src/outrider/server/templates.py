"""Chats to prompts, by the model's template, in a process that is ended where it takes too long."""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from typing import Any

from outrider.server.faults import invalid
from outrider.text.tokenizer import Tokenizer

MOST_BYTES = 64 << 20  # of a prompt, on its way back as a line
FIRST_S = 30.0  # for the process itself to start, on a busy machine


class Templates:
    """Renders the chat template of one model.

    Args:
        tokenizer: has the template and its special tokens.
        seconds: that one chat may take.
    """

    def __init__(self, tokenizer: Tokenizer, *, seconds: float) -> None:
        self._tokenizer, self._seconds = tokenizer, seconds
        self._process: Process | None = None
        self._lock = asyncio.Lock()

    async def render(self, messages: Sequence[Mapping[str, Any]], **variables: Any) -> str:
        """Return the prompt of a chat.

        Args:
            messages: ``role``, ``content`` and what else the template reads.
            variables: further names for the template.

        Raises:
            ApiError: there is no template, it refuses, or it takes too long.
        """
        if self._tokenizer.chat_template is None:
            raise invalid("The model has no chat template: it continues plain text. Use /v1/completions.")
        asked = json.dumps({"messages": messages, "variables": variables}) + "\n"
        async with self._lock:
            answer = await self._ask(asked.encode())
        if "text" not in answer:
            raise invalid(answer["refused"], param="messages", code="chat_template")
        return str(answer["text"])

    async def _ask(self, line: bytes) -> dict[str, str]:
        fresh = self._process is None
        try:
            async with asyncio.timeout(self._seconds + (FIRST_S if fresh else 0)):
                process = await self._running()
                assert process.stdin is not None  # noqa: S101 -- it was opened with pipes
                assert process.stdout is not None  # noqa: S101
                process.stdin.write(line)
                await process.stdin.drain()
                answer = await process.stdout.readline()
        except (TimeoutError, ValueError, ConnectionError):
            answer = b""
        except BaseException:  # whoever asked is gone: the answer would be taken for the next one's
            self._kill()
            raise
        if not answer.endswith(b"\n"):
            self._kill()
            raise invalid(
                f"The chat template did not render these messages within {self._seconds:g} s and the memory it may "
                "take; send fewer or shorter ones.",
                param="messages",
                code="chat_template",
            )
        found: dict[str, str] = json.loads(answer)
        return found

    async def _running(self) -> Process:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "outrider.server.template_child", stdin=PIPE, stdout=PIPE, limit=MOST_BYTES
            )
            tokenizer = self._tokenizer
            model = {
                "template": tokenizer.chat_template,
                "bos_token": tokenizer.bos_token,
                "eos_token": tokenizer.eos_token,
            }
            assert self._process.stdin is not None  # noqa: S101 -- it was opened with pipes
            self._process.stdin.write(json.dumps(model).encode() + b"\n")
        return self._process

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process = None

    async def close(self) -> None:
        """End the process."""
        process = self._process
        self._kill()
        if process is not None:
            await process.wait()
