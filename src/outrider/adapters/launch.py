"""A launch command as people paste it: prompts, line ends, environment, docker; its options by name."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_VARIABLE = re.compile(r"^[A-Z][A-Z0-9_]*=")
_PROMPT = re.compile(r"^\s*(\$|#|>|PS [^>]*>)\s+", re.MULTILINE)
_CONTINUED = re.compile(r"[\\`^]\s*\n")
_OPTION = re.compile(r"^--?[A-Za-z][\w.-]*(=|$)")
_IMAGE = re.compile(r"(?<![\w/])[\w.-]+/(?:[\w.-]+/)*[\w.-]*(?:vllm|sglang|llama)[\w.-]*:[\w.-]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Launch:
    """A command taken apart.

    Attributes:
        text: as it was given.
        words: what stands without an option, the program first.
        options: values by name, dashes as underscores; True for one without a value; a list where repeated.
        environment: variables set for it.
        image: a container's, with its tag.
    """

    text: str
    words: tuple[str, ...]
    options: dict[str, Any]
    environment: dict[str, str]
    image: str | None = None

    def get(self, *names: str) -> str | None:
        """Return the value of the first of these options that has one."""
        for name in names:
            value = self.options.get(name)
            value = value[-1] if isinstance(value, list) else value
            if isinstance(value, str):
                return value
        return None

    def number(self, *names: str) -> int | None:
        """Return such a value as a whole number; None where it is none."""
        value = self.get(*names)
        return int(value) if value is not None and re.fullmatch(r"\d{1,9}", value) else None

    def has(self, *names: str) -> bool:
        """Say whether one of them is there."""
        return any(name in self.options for name in names)

    def settings(self) -> dict[str, Any]:
        """Return options and environment, whole numbers as such."""
        given = {**self.options, **self.environment}
        return {key: int(v) if isinstance(v, str) and v.isdigit() else v for key, v in given.items()}

    def after(self, *words: str) -> str | None:
        """Return the word that follows one of these: ``vllm serve MODEL``."""
        for first, second in zip(self.words, self.words[1:], strict=False):
            if first in words:
                return second
        return None


def read_command(text: str) -> Launch:
    """Take a command apart; what is no command gives one without options."""
    words = _split(_CONTINUED.sub(" ", _PROMPT.sub("", text)))
    environment: dict[str, str] = {}
    free: list[str] = []
    options: dict[str, Any] = {}
    for name, value in _pairs(words):
        variable = value if name in ("e", "env", None) else None
        if isinstance(variable, str) and _VARIABLE.match(variable):
            key, _, setting = variable.partition("=")
            environment[key] = setting
        elif name is not None:
            _add(options, name.replace("-", "_"), value)
        elif isinstance(value, str):
            free.append(value)
    image = _IMAGE.search(text)
    return Launch(text, tuple(free), options, environment, image.group(0) if image else None)


def as_json(text: str | None) -> Any:
    """Return a JSON option's value; None where it is none, as with quotes that a paste has lost."""
    if text is None:
        return None
    for candidate in (text, text.replace("'", '"')):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    return _loose(text)


def _loose(text: str) -> dict[str, Any] | None:
    """Read ``{method:dflash,num_speculative_tokens:15}``, which shells leave of JSON without quotes."""
    if not text.strip().startswith("{"):
        return None
    pairs = re.findall(r"[\"']?([A-Za-z_]\w*)[\"']?\s*:\s*[\"']?([^,\"'{}\s]+)", text)
    return {key: int(value) if value.isdigit() else value for key, value in pairs} or None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=False)
    except ValueError:  # a quote that is not closed
        return text.split()


def _pairs(words: Sequence[str]) -> Iterator[tuple[str | None, Any]]:
    """Yield options with their values, True where the next word is an option too; other words with None."""
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not _OPTION.match(word):
            yield None, word
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if equals:
            yield name, value
        elif index < len(words) and not _OPTION.match(words[index]):
            yield name, words[index]
            index += 1
        else:
            yield name, True


def _add(options: dict[str, Any], name: str, value: Any) -> None:
    if name not in options:
        options[name] = value
    elif isinstance(options[name], list):
        options[name].append(value)
    else:
        options[name] = [options[name], value]
