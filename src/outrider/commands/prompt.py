"""Where a prompt comes from: an argument, a file, or standard input. Knows no model."""

import sys
from pathlib import Path

from outrider.errors import UsageError

STDIN = "-"


def read_prompt(argument: str | None, file: Path | None) -> str:
    """Return the prompt's text.

    Raises:
        UsageError: given twice or not at all, unreadable, or not UTF-8.
    """
    if argument is not None and file is not None:
        raise UsageError("The prompt was given twice, as an argument and with --file; give one.")
    if file is not None:
        return read_text(file)
    if argument == STDIN or (argument is None and not sys.stdin.isatty()):
        text = _read_stdin()
        if not text:
            raise UsageError("There is no prompt: standard input was empty. " + _WAYS)
        return text
    if argument is None:
        raise UsageError("There is no prompt. " + _WAYS)
    return argument


_WAYS = "Give it as an argument, with --file FILE, or on standard input."


def _read_stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError(f"Standard input is not UTF-8 text (byte {error.start}).") from None


def read_text(path: Path) -> str:
    """Return a file's text.

    Raises:
        UsageError: unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot read the file {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}).") from None


def as_chat(text: str, system: str | None) -> list[dict[str, str]]:
    """Return the conversation in which ``text`` is the user's turn."""
    opening = [] if system is None else [{"role": "system", "content": system}]
    return [*opening, {"role": "user", "content": text}]
