"""The addresses of the API."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Body, Request
from starlette.responses import JSONResponse, Response

from outrider import __version__
from outrider.server.answers import (
    ChatAnswer,
    CompletionAnswer,
    DetokenizeAnswer,
    HealthAnswer,
    ModelAnswer,
    ModelsAnswer,
    TokenizeAnswer,
    VersionAnswer,
)
from outrider.server.context import Context
from outrider.server.faults import invalid
from outrider.server.forms import Chat, Form, Plain, chunks, whole
from outrider.server.requests import ChatRequest, CompletionRequest, DetokenizeRequest, TokenizeRequest, Wishes
from outrider.server.streams import EventStream, unless_gone
from outrider.server.wishes import chat_params, completion_params
from outrider.server.work import Texts, Work

PAGE = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.svg": ("page.svg", "image/svg+xml"),
}


def text_routes(context: Context) -> APIRouter:
    """Return the addresses that write text."""
    router = APIRouter()

    @router.post("/v1/chat/completions", response_model=ChatAnswer)
    async def chat(request: Request, wishes: Annotated[ChatRequest, Body()]) -> Response:
        """Answer a chat, whole or as a stream."""
        ready = _check(context, wishes)
        prompt = await context.prompts.of_chat(wishes)
        params = chat_params(wishes, len(prompt), ready)
        form = Chat(context.words, bool(wishes.logprobs))
        return await _answer(context, request, wishes, form, [(prompt, one) for one in params])

    @router.post("/v1/completions", response_model=CompletionAnswer)
    async def completion(request: Request, wishes: Annotated[CompletionRequest, Body()]) -> Response:
        """Continue prompts, whole or as a stream."""
        ready = _check(context, wishes)
        prompts = await context.prompts.of_completion(wishes)
        texts = [(prompt, one) for prompt in prompts for one in completion_params(wishes, len(prompt), ready)]
        form = Plain(context.words, wishes.logprobs is not None)
        return await _answer(context, request, wishes, form, texts)

    return router


def _check(context: Context, wishes: Wishes) -> int:
    """Refuse what can be refused before anything is read; return the longest sequence."""
    context.check_model(wishes.model)
    if wishes.stream_options is not None and not wishes.stream:
        raise invalid("stream_options needs stream: true.", param="stream_options")
    if wishes.speculation.rounds and not wishes.stream:
        raise invalid("outrider.rounds is told as rounds happen: it needs stream: true.", param="outrider.rounds")
    prompts = wishes.prompt if isinstance(wishes, CompletionRequest) else ""
    several = len(prompts) if isinstance(prompts, list) and not isinstance(prompts[0], int) else 1
    most, wanted = context.settings.limits.choices, several * (wishes.n or 1)
    if wanted > most:
        raise invalid(
            f"{wanted} texts of one request (prompts times n): at most {most}; send several requests.", param="n"
        )
    return context.client.check_ready().max_len


async def _answer(context: Context, request: Request, wishes: Wishes, form: Form, texts: Texts) -> Response:
    name, limits = context.settings.name, context.settings.limits
    sizes = [len(prompt) for prompt, _ in texts][:: wishes.n or 1]
    work = Work(
        context.client,
        context.measures,
        texts,
        prompts=sizes,
        speculation=wishes.speculation,
        deadline_s=limits.deadline_s,
    )
    request.state.work = work  # for the log
    if not wishes.stream:
        answer = await unless_gone(request, work, whole(work, form, name))
        return JSONResponse(answer)
    usage = wishes.stream_options is not None and wishes.stream_options.include_usage
    return EventStream(chunks(work, form, context.words, name, usage=usage), work, stall_s=limits.stall_s)


def token_routes(context: Context) -> APIRouter:
    """Return the addresses that turn text into tokens and back."""
    router = APIRouter()

    @router.post("/tokenize")
    async def tokenize(wishes: Annotated[TokenizeRequest, Body()]) -> TokenizeAnswer:
        """Turn a text or a chat into token ids."""
        context.check_model(wishes.model)
        if (wishes.prompt is None) == (wishes.messages is None):
            raise invalid("Expected either prompt or messages.", param="prompt")
        if wishes.messages is not None:
            tokens = await context.prompts.of_messages(wishes.messages)
        else:
            tokens = await context.prompts.encode(wishes.prompt or "", add_special=wishes.add_special_tokens)
        pieces = [context.prompts.tokenizer.piece(token) or "" for token in tokens]
        return TokenizeAnswer(
            count=len(tokens),
            max_model_len=context.client.check_ready().max_len,
            tokens=list(tokens),
            token_strs=pieces if wishes.return_token_strs else None,
        )

    @router.post("/detokenize")
    async def detokenize(wishes: Annotated[DetokenizeRequest, Body()]) -> DetokenizeAnswer:
        """Turn token ids into text, special tokens written out."""
        context.check_model(wishes.model)
        tokenizer = context.prompts.tokenizer
        wrong = next((token for token in wishes.tokens if tokenizer.piece(token) is None), None)
        if wrong is not None:
            raise invalid(f"Token {wrong} is none of the tokenizer's {tokenizer.vocab_size}.", param="tokens")
        return DetokenizeAnswer(prompt=tokenizer.decode(wishes.tokens, skip_special=False))

    return router


def watch_routes(context: Context) -> APIRouter:
    """Return the addresses that say what runs and how it fares."""
    router = APIRouter()

    @router.get("/v1/models")
    async def models() -> ModelsAnswer:
        """List the model."""
        length = context.client.check_ready().max_len
        return ModelsAnswer(data=[ModelAnswer(id=context.settings.name, created=context.started, max_model_len=length)])

    @router.get("/health")
    async def health() -> HealthAnswer:
        """Answer 200 while requests are served, 503 while the engine is loaded again."""
        context.client.check_ready()
        return HealthAnswer(status="ok")

    @router.get("/version")
    async def version() -> VersionAnswer:
        """Say what runs."""
        return VersionAnswer(version=__version__)

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Return Prometheus' metrics."""
        return Response(context.measures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def page_routes(_context: Context) -> APIRouter:
    """Return the addresses of the page."""
    router = APIRouter(include_in_schema=False)
    folder = files("outrider.server") / "page"
    for address, (name, kind) in PAGE.items():
        body = (folder / name).read_bytes()
        router.add_api_route(address, _static(body, kind), methods=["GET"])
    return router


def _static(body: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def serve() -> Response:
        return Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})

    return serve
