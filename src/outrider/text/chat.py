"""Renders a conversation with the model's own chat template, by Hugging Face's conventions.

A template is code from a stranger: it runs in a sandbox, and whatever goes wrong in it is one line
that says where. It does not know tokens: special tokens come in as text.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from outrider.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    import jinja2

_FILE = "<chat template>"
REMEDY = "Mend the template in the model's files, or give the prompt without --chat."


class RejectedChatError(UsageError):
    """A template's own ``raise_exception``: it does not accept these messages."""


def render_chat(
    template: str | None,
    messages: Sequence[Mapping[str, Any]],
    *,
    add_generation_prompt: bool = True,
    bos_token: str | None = None,
    eos_token: str | None = None,
    **variables: Any,
) -> str:
    """Return the prompt that the template makes of ``messages``.

    Args:
        template: the model's chat template, ``None`` where it has none.
        messages: each with ``role`` and ``content``, and whatever else the template reads.
        add_generation_prompt: end with the words that open the assistant's answer.
        bos_token: the begin token as text; unknown to the template where the model has none.
        eos_token: the end token as text, likewise.
        variables: further names for the template, such as ``tools`` or ``enable_thinking``.

    Raises:
        RejectedChatError: the template refuses these messages.
        UsageError: the model has no template.
        CheckpointError: the template is broken.
    """
    if template is None:
        raise UsageError("The model has no chat template: it continues plain text. Give the prompt without --chat.")
    special = {"bos_token": bos_token, "eos_token": eos_token}
    names = {
        # Templates ask "tools is not none": a name that is merely absent would pass for a tool.
        "tools": None,
        "documents": None,
        **{name: token for name, token in special.items() if token is not None},
        **variables,
        "messages": [_without_none(message) for message in messages],
        "add_generation_prompt": add_generation_prompt,
    }
    compiled = _compile(template)
    try:
        return compiled.render(names)
    except RejectedChatError as error:
        raise RejectedChatError(f"The chat template{_place(error)} refuses: {error}") from None
    except Exception as error:  # noqa: BLE001 - a template can raise whatever Python can
        raise _broken(_place(error), error) from None


@lru_cache(maxsize=8)
def _compile(template: str) -> "jinja2.Template":
    from jinja2 import TemplateSyntaxError

    from outrider.text.chat_environment import make_environment

    environment = make_environment()
    try:
        code = environment.compile(template, filename=_FILE)
    except TemplateSyntaxError as error:
        raise _broken(f", line {error.lineno},", error) from None
    except RecursionError as error:
        raise _broken("", error) from None
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def _without_none(message: Mapping[str, Any]) -> dict[str, Any]:
    """Drop empty keys: ``"tool_calls": null`` means none, yet a template would see the key."""
    return {key: value for key, value in message.items() if value is not None}


def _place(error: Exception) -> str:
    """Return the template's line on which ``error`` arose, ready for a sentence."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if _in_template(frame)]
    return f", line {lines[-1]}," if lines else ""


def _in_template(frame: Any) -> bool:
    return bool(frame.f_code.co_filename == _FILE)


def _broken(place: str, error: Exception) -> CheckpointError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return CheckpointError(
        f"The chat template{place} is broken: {reason.rstrip('.')} ({type(error).__name__}). {REMEDY}"
    )
