"""What clients may ask, as OpenAI's API has it, and what this server adds: strict, so that no wish is passed over.

Numbers are checked again where they become sampling settings (``engine/params.py``).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

WHOLE_64 = 2**63 - 1
Token = Annotated[int, Field(ge=0, le=2**31)]
Stop = Annotated[str, Field(min_length=1, max_length=1000)]


class Strict(BaseModel):
    """A field that is not known, or of another type, is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class StreamOptions(Strict):
    """Of a stream: ``include_usage`` adds a last chunk with the usage."""

    include_usage: bool = False
    continuous_usage_stats: Literal[False] = False


class Speculation(Strict):
    """What this server adds: how to draft for this request, and what to tell of it.

    Attributes:
        draft_length: at most so many guesses in a row; 0 turns drafting off. By itself it is as many as pay.
        acceptance: tell acceptance by position at the end.
        rounds: tell where each token came from, and each round's tree; streams only.
    """

    draft_length: Annotated[int | None, Field(ge=0, le=1024)] = None
    acceptance: bool = False
    rounds: bool = False


class Wishes(Strict):
    """What chats and completions have in common. ``None`` is the default everywhere, as with OpenAI."""

    model: Annotated[str, Field(max_length=1000)]
    n: Annotated[int | None, Field(ge=1)] = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    stop: Stop | Annotated[list[Stop], Field(max_length=16)] | None = None
    seed: Annotated[int | None, Field(ge=-WHOLE_64 - 1, le=WHOLE_64)] = None
    presence_penalty: Annotated[float | None, Field(ge=-2, le=2)] = None
    frequency_penalty: Annotated[float | None, Field(ge=-2, le=2)] = None
    logit_bias: Annotated[dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], float], Field(max_length=1024)] | None = (
        None
    )
    max_tokens: Annotated[int | None, Field(ge=1, le=2**31)] = None
    # Beyond OpenAI's, as vLLM has them.
    top_k: Annotated[int | None, Field(ge=-1, le=2**31)] = None
    min_p: Annotated[float | None, Field(ge=0, lt=1)] = None
    repetition_penalty: Annotated[float | None, Field(ge=0.01, le=100)] = None
    stop_token_ids: Annotated[list[Token] | None, Field(max_length=64)] = None
    ignore_eos: bool = False
    # Taken and of no effect: they say who asks, or what OpenAI's own service should do with it.
    user: str | None = None
    metadata: dict[str, str] | None = None
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default"] | None = None
    store: Literal[False] | None = None
    outrider: Speculation | None = None

    @property
    def speculation(self) -> Speculation:
        """What is wished of drafting."""
        return self.outrider or Speculation()


class CompletionRequest(Wishes):
    """``POST /v1/completions``."""

    prompt: (
        str
        | Annotated[list[Token], Field(min_length=1)]
        | Annotated[list[str], Field(min_length=1)]
        | Annotated[list[Annotated[list[Token], Field(min_length=1)]], Field(min_length=1)]
    )
    logprobs: Annotated[int | None, Field(ge=0, le=20)] = None
    best_of: Annotated[int | None, Field(ge=1)] = None
    echo: Literal[False] | None = None
    suffix: None = None


class TextPart(Strict):
    """A part of a message; this server reads text alone."""

    type: Literal["text"]
    text: str


class FunctionCall(Strict):
    """What an assistant called; ``arguments`` is JSON."""

    name: str
    arguments: str


class ToolCall(Strict):
    """A call by an assistant, earlier in the chat."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(Strict):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None


class Function(Strict):
    """What a model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict):
    """A tool; shown to the model by its chat template."""

    type: Literal["function"]
    function: Function


class PlainText(Strict):
    """The one response format."""

    type: Literal["text"]


class ChatRequest(Wishes):
    """``POST /v1/chat/completions``."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Annotated[int | None, Field(ge=1, le=2**31)] = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20)] = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    response_format: PlainText | None = None
    chat_template_kwargs: Annotated[dict[str, bool | int | float | str | None], Field(max_length=16)] | None = None


class TokenizeRequest(Strict):
    """``POST /tokenize``: a text, or a chat."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[Message] | None, Field(min_length=1)] = None
    add_special_tokens: bool = True
    return_token_strs: bool = False


class DetokenizeRequest(Strict):
    """``POST /detokenize``."""

    model: str | None = None
    tokens: list[Token]
