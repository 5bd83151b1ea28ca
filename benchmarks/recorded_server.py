"""What a real server printed and answered, kept as files, without the folders of this machine."""

import json
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from benchmarks.real_server import Answer, Started, chat, get

PAGES = {"version.json": "/version", "models.json": "/v1/models", "props.json": "/props", "slots.json": "/slots"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A server that was asked prompts.

    Attributes:
        answers: in their order.
        seconds: for all of them.
        pages: file name to what the server said: metrics before and after, what it is.
    """

    answers: Sequence[Answer]
    seconds: float
    pages: Mapping[str, str]

    @property
    def texts(self) -> list[str]:
        """What it wrote."""
        return [answer.text for answer in self.answers]


def ask(server: Started, prompts: Sequence[str], max_tokens: int) -> Asked:
    """Ask the prompts greedily, one after the other, and read the server's pages before and after."""
    before = _page(server, "/metrics")
    start = time.monotonic()
    answers = chat(server.url, prompts, max_tokens)
    seconds = time.monotonic() - start
    found = {name: _page(server, address) for name, address in PAGES.items()}
    pages = {"metrics_before.txt": before, "metrics_after.txt": _page(server, "/metrics"), **found}
    return Asked(answers, seconds, {name: text for name, text in pages.items() if text is not None})


def keep(folder: Path, server: Started, asked: Asked, names: Mapping[str, str], **more: Any) -> None:
    """Write it all into a folder.

    Args:
        folder: is made.
        server: while it runs.
        asked: what it answered.
        names: what stands for folders and files of this machine.
        more: goes into the summary.
    """
    folder.mkdir(parents=True)
    log = server.log.read_text(encoding="utf-8", errors="replace")
    summary = {
        "answers": [{key: value for key, value in asdict(one).items() if key != "text"} for one in asked.answers],
        "seconds": round(asked.seconds, 1),
        **more,
    }
    texts = {
        "command.txt": shlex.join(server.command) + "\n",
        "server.log": re.sub(r"\x1b\[[0-9;]*m", "", log),
        "summary.json": json.dumps(summary, indent=1) + "\n",
        **{name: _laid_out(text) if name.endswith(".json") else text for name, text in asked.pages.items()},
    }
    for name, text in texts.items():
        (folder / name).write_text(_renamed(text, names), encoding="utf-8")


def _page(server: Started, address: str) -> str | None:
    try:
        return get(server.url + address).decode()
    except HTTPError:  # not every engine has every page
        return None


def _laid_out(text: str) -> str:
    return json.dumps(json.loads(text), indent=1) + "\n"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for own, neutral in names.items():
        text = text.replace(own, neutral)
    return text
