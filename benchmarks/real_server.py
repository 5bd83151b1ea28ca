"""A real server of another engine, in its own environment: started for a pair, asked, stopped whatever happens."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

UP_S = 600.0
STOP_S = 30.0


@dataclass(frozen=True, slots=True)
class Started:
    """A server that answers.

    Attributes:
        url: where.
        log: what it has printed.
        command: how it was started.
    """

    url: str
    log: Path
    command: list[str]


@contextmanager
def serving(command: Callable[[int], list[str]], log: Path, environment: dict[str, str]) -> Iterator[Started]:
    """Start a server and yield it when it answers.

    Args:
        command: for a port.
        log: a file for what it prints.
        environment: beside this process's own.

    Raises:
        RuntimeError: it died, or did not answer in time.
    """
    port = _free_port()
    words = command(port)
    with log.open("wb") as file:
        process = subprocess.Popen(
            words, stdout=file, stderr=subprocess.STDOUT, env=os.environ | environment, start_new_session=True
        )
        try:
            _wait(process, f"http://127.0.0.1:{port}/health", log)
            yield Started(f"http://127.0.0.1:{port}", log, words)
        finally:
            _stop(process)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        text: what was written.
        prompt_tokens, output_tokens: by the server's own count.
        finish: why it ended.
    """

    text: str
    prompt_tokens: int
    output_tokens: int
    finish: str


def chat(url: str, prompts: Sequence[str], max_tokens: int) -> list[Answer]:
    """Return the greedy answer to each prompt, one after the other."""
    model = json.loads(get(f"{url}/v1/models"))["data"][0]["id"]
    return [_answer(url, model, prompt, max_tokens) for prompt in prompts]


def _answer(url: str, model: str, prompt: str, max_tokens: int) -> Answer:
    said = [{"role": "user", "content": prompt}]
    body = {"model": model, "messages": said, "max_tokens": max_tokens, "temperature": 0}
    found = json.loads(get(f"{url}/v1/chat/completions", body))
    choice, usage = found["choices"][0], found["usage"]
    text = str(choice["message"]["content"])
    return Answer(text, usage["prompt_tokens"], usage["completion_tokens"], str(choice["finish_reason"]))


def get(url: str, body: dict[str, Any] | None = None) -> bytes:
    """Read a page, or send a request and read its answer."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data=data, headers={"Content-Type": "application/json"})  # noqa: S310 -- loopback
    with urlopen(request, timeout=UP_S) as response:  # noqa: S310 -- likewise
        return bytes(response.read())


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    start = time.monotonic()
    while time.monotonic() - start < UP_S:
        if process.poll() is not None:
            raise RuntimeError(f"The server died with {process.returncode}: {_end(log)}")
        try:
            get(url)
        except (URLError, OSError):
            time.sleep(1)
        else:
            print(f"up after {time.monotonic() - start:.0f} s", file=sys.stderr)
            return
    raise RuntimeError(f"The server did not answer within {UP_S:.0f} s: {_end(log)}")


def _end(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-400:]


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            break
    process.wait()


def _free_port() -> int:
    with socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
