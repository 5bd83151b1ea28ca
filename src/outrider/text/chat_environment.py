"""The sandbox that chat templates run in: what Hugging Face's templates may call, and no more."""

import json
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from outrider.text.chat import RejectedChatError


class _GenerationBlock(Extension):
    """``{% generation %}`` marks the assistant's words for training; here it only shows them."""

    tags = {"generation"}  # noqa: RUF012 - the attribute is jinja's

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        # Trainers run the body as a call, so what it sets is not seen outside; nor is it here.
        return nodes.Scope(body, lineno=line)


def make_environment() -> ImmutableSandboxedEnvironment:
    """Return a fresh sandbox with Hugging Face's settings, filter and functions."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - templates pass these by position or name
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002 - as above
) -> str:
    """Write JSON as it is; jinja's own filter escapes it for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: object) -> NoReturn:
    raise RejectedChatError(" ".join(str(message).split()))


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)  # noqa: DTZ005 - the user's wall clock, as HF gives it
