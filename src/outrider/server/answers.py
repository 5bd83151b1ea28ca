"""What the server answers, as OpenAI's API has it; what is added stands under ``outrider``."""

from typing import Any, Literal

from pydantic import BaseModel

Reason = Literal["stop", "length"]


class PromptDetails(BaseModel):
    """Of the prompt's tokens: those that did not have to be read."""

    cached_tokens: int


class CompletionDetails(BaseModel):
    """Of what was drafted: nodes accepted, and nodes that were not."""

    accepted_prediction_tokens: int
    rejected_prediction_tokens: int


class Usage(BaseModel):
    """Tokens of a request, over its choices."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class AcceptanceAnswer(BaseModel):
    """Acceptance of a request by the glossary's words, pooled over its rounds.

    Attributes:
        length: tokens a round, the bonus token counted.
        rate: accepted of those drafted; None where nothing was.
        position_rates: share of all rounds in which positions 1..k were all accepted.
    """

    rounds: int
    drafted: int
    accepted: int
    length: float | None
    rate: float | None
    position_rates: list[float]


class NodeAnswer(BaseModel):
    """A node of a round's tree; ``parent`` 0 is the anchor.

    Attributes:
        target: probability by the target's own law.
        reach: by the drafter's account, that the walk gets there.
    """

    token: int
    text: str
    parent: int
    target: float
    reach: float | None


class TokenAnswer(BaseModel):
    """Where a token came from: ``depth`` of its draft tree, 0 where the target decided it.

    Attributes:
        kind: a draft that was accepted, the bonus token of a round with drafts, or one of a round without.
    """

    token: int
    text: str
    kind: Literal["draft", "bonus", "plain"]
    depth: int


class RoundAnswer(BaseModel):
    """One round: its tree, the accepted path (nodes from 1), and what came of it."""

    anchor: str
    nodes: list[NodeAnswer]
    path: list[int]
    bonus: str
    seconds: float


class Told(BaseModel):
    """What is added to an answer or a chunk."""

    acceptance: AcceptanceAnswer | None = None
    tokens: list[TokenAnswer] | None = None
    round: RoundAnswer | None = None


class TopLogprob(BaseModel):
    """A token and its log-probability by the target's own law."""

    token: str
    logprob: float
    bytes: list[int]


class ChatLogprob(TopLogprob):
    """That of a token of the text, and of the likeliest at its place."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(BaseModel):
    """One entry a token."""

    content: list[ChatLogprob]
    refusal: None = None


class CompletionLogprobs(BaseModel):
    """Columns, one entry a token."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class AssistantMessage(BaseModel):
    """A whole answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Delta(BaseModel):
    """A part of an answer."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChatChoice(BaseModel):
    """One of ``n``."""

    index: int
    message: AssistantMessage
    logprobs: ChatLogprobs | None
    finish_reason: Reason


class ChatAnswer(BaseModel):
    """Answers a chat."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    system_fingerprint: str


class CompletionChoice(BaseModel):
    """One of ``n`` for each prompt, or a part of one."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Reason | None


class CompletionAnswer(BaseModel):
    """Answers a completion."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage
    system_fingerprint: str


class ModelAnswer(BaseModel):
    """The model that is served."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "outrider"
    max_model_len: int


class ModelsAnswer(BaseModel):
    """All models: one."""

    object: Literal["list"] = "list"
    data: list[ModelAnswer]


class TokenizeAnswer(BaseModel):
    """Token ids of a text."""

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None = None


class DetokenizeAnswer(BaseModel):
    """The text of token ids."""

    prompt: str


class HealthAnswer(BaseModel):
    """Whether requests are served."""

    status: Literal["ok"]


class VersionAnswer(BaseModel):
    """What runs."""

    version: str
    engine: Literal["outrider"] = "outrider"


Json = dict[str, Any]
