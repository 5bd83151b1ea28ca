"""The two forms of an answer, chat and completion: whole, or in chunks as the texts grow."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol
from uuid import uuid4

from pydantic import BaseModel

from outrider import __version__
from outrider.server.answers import (
    AssistantMessage,
    ChatAnswer,
    ChatChoice,
    CompletionAnswer,
    CompletionChoice,
    Delta,
    Json,
    Reason,
    Told,
)
from outrider.server.messages import Progress
from outrider.server.told import Words
from outrider.server.work import Work
from outrider.transcript import Piece

FINGERPRINT = f"outrider-{__version__}"


@dataclass(slots=True)
class Text:
    """One choice so far."""

    pieces: list[Piece] = field(default_factory=list)
    length: int = 0
    reason: Reason = "stop"

    def add(self, progress: Progress) -> str:
        """Take a step in; return the text that it brought."""
        new = "".join(piece.text for piece in progress.pieces)
        self.pieces += progress.pieces
        self.length += len(new)
        if progress.end is not None:
            self.reason = "length" if progress.end.finish_reason == "length" else "stop"
        return new

    @property
    def whole(self) -> str:
        """All of it."""
        return "".join(piece.text for piece in self.pieces)


class Form(Protocol):
    """A form of answers."""

    prefix: ClassVar[str]
    chunk_object: ClassVar[str]

    def opening(self, index: int) -> Json | None:
        """Return the choice of a chunk that comes before any text, if there is one."""
        ...

    def piece(self, index: int, text: str, pieces: Sequence[Piece], offset: int) -> Json:
        """Return the choice of a chunk with text."""
        ...

    def closing(self, index: int, reason: Reason) -> Json:
        """Return the choice of the last chunk."""
        ...

    def whole(self, texts: Sequence[Text]) -> Sequence[BaseModel]:
        """Return all choices."""
        ...

    def answer(self, head: Json, choices: Sequence[BaseModel], work: Work) -> BaseModel:
        """Return the whole answer."""
        ...


def acceptance_told(work: Work) -> Told | None:
    """Return what was asked to be told at the end."""
    return Told(acceptance=work.tally.told()) if work.speculation.acceptance else None


@dataclass(frozen=True, slots=True)
class Chat:
    """``chat.completion``; with log-probabilities where ``logprobs``."""

    words: Words
    logprobs: bool
    prefix: ClassVar[str] = "chatcmpl-"
    chunk_object: ClassVar[str] = "chat.completion.chunk"

    def opening(self, index: int) -> Json | None:
        """The role."""
        return _choice(index, delta=Delta(role="assistant", content="").model_dump(exclude_none=True))

    def piece(self, index: int, text: str, pieces: Sequence[Piece], offset: int) -> Json:  # noqa: ARG002 -- the other form's
        """A delta."""
        told = self.words.chat_logprobs(pieces).model_dump() if self.logprobs else None
        return _choice(index, delta={"content": text}, logprobs=told)

    def closing(self, index: int, reason: Reason) -> Json:
        """An empty delta."""
        return _choice(index, delta={}, reason=reason)

    def whole(self, texts: Sequence[Text]) -> list[ChatChoice]:
        """Messages."""
        return [
            ChatChoice(
                index=index,
                message=AssistantMessage(content=text.whole),
                logprobs=self.words.chat_logprobs(text.pieces) if self.logprobs else None,
                finish_reason=text.reason,
            )
            for index, text in enumerate(texts)
        ]

    def answer(self, head: Json, choices: Sequence[BaseModel], work: Work) -> ChatAnswer:
        """All of it."""
        return ChatAnswer(**head, choices=choices, usage=work.tally.usage())


@dataclass(frozen=True, slots=True)
class Plain:
    """``text_completion``; with log-probabilities where ``logprobs``."""

    words: Words
    logprobs: bool
    prefix: ClassVar[str] = "cmpl-"
    chunk_object: ClassVar[str] = "text_completion"

    def opening(self, index: int) -> Json | None:  # noqa: ARG002 -- the other form's
        """Nothing."""
        return None

    def piece(self, index: int, text: str, pieces: Sequence[Piece], offset: int) -> Json:
        """A part of the text."""
        told = self.words.completion_logprobs(pieces, offset).model_dump() if self.logprobs else None
        return _choice(index, text=text, logprobs=told)

    def closing(self, index: int, reason: Reason) -> Json:
        """No more text."""
        return _choice(index, text="", reason=reason)

    def whole(self, texts: Sequence[Text]) -> list[CompletionChoice]:
        """Texts."""
        return [
            CompletionChoice(
                index=index,
                text=text.whole,
                logprobs=self.words.completion_logprobs(text.pieces, 0) if self.logprobs else None,
                finish_reason=text.reason,
            )
            for index, text in enumerate(texts)
        ]

    def answer(self, head: Json, choices: Sequence[BaseModel], work: Work) -> CompletionAnswer:
        """All of it."""
        return CompletionAnswer(**head, choices=choices, usage=work.tally.usage())


def _choice(index: int, *, logprobs: Json | None = None, reason: Reason | None = None, **content: object) -> Json:
    return {"index": index, **content, "logprobs": logprobs, "finish_reason": reason}


def head_of(form: Form, model: str) -> Json:
    """Return what every answer and chunk of a request begins with."""
    return {
        "id": form.prefix + uuid4().hex,
        "created": int(time.time()),
        "model": model,
        "system_fingerprint": FINGERPRINT,
    }


async def whole(work: Work, form: Form, model: str) -> Json:
    """Wait for all texts; return the answer."""
    texts = [Text() for _ in range(work.choices)]
    async for job, progress in work.steps():
        texts[job.index].add(progress)
    answer = form.answer(head_of(form, model), form.whole(texts), work).model_dump()
    told = acceptance_told(work)
    return answer | ({} if told is None else {"outrider": told.model_dump(exclude_none=True)})


async def chunks(work: Work, form: Form, words: Words, model: str, *, usage: bool) -> AsyncIterator[Json]:
    """Yield an answer's chunks; ``usage`` adds a last one with the usage."""
    texts = [Text() for _ in range(work.choices)]
    head = head_of(form, model) | {"object": form.chunk_object} | ({"usage": None} if usage else {})
    async for job, progress in work.steps():
        text, index = texts[job.index], job.index
        if not text.pieces and (opening := form.opening(index)) is not None:
            yield head | {"choices": [opening]}
        offset, new = text.length, text.add(progress)
        yield head | {"choices": [form.piece(index, new, progress.pieces, offset)]} | _told(work, words, progress)
        if progress.end is not None:
            yield head | {"choices": [form.closing(index, text.reason)]}
    last = acceptance_told(work)
    if usage or last is not None:
        ending = {"outrider": last.model_dump(exclude_none=True)} if last else {}
        yield head | {"choices": [], "usage": work.tally.usage().model_dump()} | ending


def _told(work: Work, words: Words, progress: Progress) -> Json:
    if not work.speculation.rounds or progress.record is None:
        return {}
    told = Told(tokens=words.tokens(progress), round=words.round(progress.record))
    return {"outrider": told.model_dump(exclude_none=True)}
