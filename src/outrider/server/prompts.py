"""From a request's text, chat or token ids to a prompt, in threads: long texts take a while to encode."""

import asyncio
import json
from typing import Any

from outrider.errors import UsageError
from outrider.server.faults import invalid
from outrider.server.requests import ChatRequest, CompletionRequest, Message, ToolCall
from outrider.server.templates import Templates
from outrider.text.tokenizer import Tokenizer

Prompt = tuple[int, ...]
# Names of a template's own that a request must not put something else under.
OWN_NAMES = frozenset({"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token", "template"})


class Prompts:
    """Makes prompts.

    Args:
        tokenizer: of the target.
        templates: render its chats.
    """

    def __init__(self, tokenizer: Tokenizer, templates: Templates) -> None:
        self.tokenizer, self._templates = tokenizer, templates

    async def of_completion(self, request: CompletionRequest) -> list[Prompt]:
        """Return the prompts of a request, at least one."""
        prompt = request.prompt
        if isinstance(prompt, str):
            return [await self.encode(prompt)]
        if isinstance(prompt[0], int):
            return [tuple(one for one in prompt if isinstance(one, int))]
        return [tuple(one) if isinstance(one, list) else await self.encode(str(one)) for one in prompt]

    async def of_chat(self, request: ChatRequest) -> Prompt:
        """Return the prompt of a chat."""
        variables = dict(request.chat_template_kwargs or {})
        taken = sorted(OWN_NAMES & variables.keys())
        if taken:
            raise invalid(f"chat_template_kwargs may not set {taken[0]!r}.", param="chat_template_kwargs")
        if request.tools and request.tool_choice != "none":
            variables["tools"] = [tool.model_dump(exclude_none=True) for tool in request.tools]  # type: ignore[assignment]
        return await self.of_messages(request.messages, **variables)

    async def of_messages(self, messages: list[Message], **variables: Any) -> Prompt:
        """Return the prompt of messages."""
        text = await self._templates.render([as_rendered(message) for message in messages], **variables)
        return await self.encode(text, add_special=False)

    async def encode(self, text: str, *, add_special: bool = True) -> Prompt:
        """Return the token ids of a text.

        Raises:
            ApiError: it is no text.
        """
        try:
            return tuple(await asyncio.to_thread(self.tokenizer.encode, text, add_special=add_special))
        except UsageError as error:
            raise invalid(str(error)) from None


def as_rendered(message: Message) -> dict[str, Any]:
    """Return a message as templates read it: content as one text, arguments of calls as objects."""
    content = message.content
    if isinstance(content, list):
        content = "\n".join(part.text for part in content)
    rendered = message.model_dump(exclude_none=True) | {"content": content or ""}
    if message.role == "developer":  # OpenAI's newer word for it, which templates do not know
        rendered["role"] = "system"
    if message.tool_calls:
        rendered["tool_calls"] = [_call(call) for call in message.tool_calls]
    return rendered


def _call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.function.arguments)
    except (ValueError, RecursionError):
        arguments = call.function.arguments
    return call.model_dump() | {"function": {"name": call.function.name, "arguments": arguments}}
