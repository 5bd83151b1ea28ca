"""Renders chat templates in a process with little memory, which can be killed: a template is code from a stranger.

Started as ``python -m outrider.server.template_child``. First line in: the template. Then a line a request, and a line
out for each. The sandbox (``text/chat_environment.py``) keeps a template from files and from Python's inside; what it
cannot bound is time and memory.
"""

import json
import signal
import sys
from typing import Any

from outrider.errors import OutriderError
from outrider.text.chat import REMEDY, render_chat

MEMORY_BYTES = 1 << 30


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    except (ImportError, ValueError, OSError):
        pass  # Windows and macOS have no such limit; the one on time holds there, too


def _answer(model: dict[str, Any], asked: dict[str, Any]) -> dict[str, str]:
    variables = asked.pop("variables")
    try:
        return {"text": render_chat(**model, **asked, **variables)}
    except OutriderError as error:
        return {"refused": str(error).removesuffix(REMEDY).strip()}


def main() -> None:
    """Serve until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory()
    model = json.loads(sys.stdin.readline())
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(model, json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
