"""From a request's wishes to sampling settings, one for each choice."""

from dataclasses import replace

from outrider.engine.params import SamplingParams
from outrider.errors import UsageError
from outrider.server.faults import ApiError, invalid
from outrider.server.requests import ChatRequest, CompletionRequest, Wishes

COMPLETION_TOKENS = 16  # OpenAI's default for completions; a chat's is what there is room for
SEEDS = 2**63  # OpenAI's seeds are signed; ours are not
TEMPERATURE = 1.0  # OpenAI's default


def completion_params(request: CompletionRequest, prompt_tokens: int, max_len: int) -> list[SamplingParams]:
    """Return the settings of a prompt's choices.

    Raises:
        ApiError: they contradict each other, or do not fit the context.
    """
    if request.best_of is not None and request.best_of != (request.n or 1):
        raise invalid("best_of other than n is not offered: every choice is returned. Drop best_of.", param="best_of")
    wanted = request.max_tokens or COMPLETION_TOKENS
    return _choices(request, wanted, request.logprobs, (prompt_tokens, max_len))


def chat_params(request: ChatRequest, prompt_tokens: int, max_len: int) -> list[SamplingParams]:
    """Return the settings of a chat's choices.

    Raises:
        ApiError: they contradict each other, or do not fit the context.
    """
    if request.top_logprobs is not None and not request.logprobs:
        raise invalid("top_logprobs needs logprobs: true.", param="top_logprobs")
    if request.max_tokens and request.max_completion_tokens and request.max_tokens != request.max_completion_tokens:
        raise invalid("max_tokens and max_completion_tokens differ: give the latter alone.", param="max_tokens")
    room = max(1, max_len - prompt_tokens)
    wanted = request.max_completion_tokens or request.max_tokens or room
    logprobs = (request.top_logprobs or 0) if request.logprobs else None
    return _choices(request, wanted, logprobs, (prompt_tokens, max_len))


def _choices(request: Wishes, max_tokens: int, logprobs: int | None, sizes: tuple[int, int]) -> list[SamplingParams]:
    _check_fits(max_tokens, *sizes)
    try:
        params = _params(request, max_tokens, logprobs)
    except UsageError as error:
        raise invalid(str(error)) from None
    if params.seed is None:
        return [params] * (request.n or 1)
    return [replace(params, seed=(params.seed + choice) % SEEDS) for choice in range(request.n or 1)]


def _check_fits(max_tokens: int, prompt_tokens: int, max_len: int) -> None:
    if prompt_tokens == 0:
        raise invalid("The prompt has no tokens: expected at least one.", param="prompt")
    if prompt_tokens + max_tokens > max_len:
        raise _too_long(prompt_tokens, max_tokens, max_len)


def _too_long(prompt_tokens: int, max_tokens: int, max_len: int) -> ApiError:
    return invalid(
        f"The prompt has {prompt_tokens} tokens and {max_tokens} new ones are wanted, together "
        f"{prompt_tokens + max_tokens}; the context of this server holds {max_len}. "
        "Shorten the prompt or lower max_tokens.",
        code="context_length_exceeded",
    )


def _params(request: Wishes, max_tokens: int, logprobs: int | None) -> SamplingParams:
    temperature = TEMPERATURE if request.temperature is None else request.temperature
    greedy = temperature == 0
    return SamplingParams(
        temperature=temperature,
        # What cuts the law is without effect where its likeliest word is taken; OpenAI's API lets it stand.
        top_k=0 if greedy else max(0, request.top_k or 0),
        top_p=1.0 if greedy or request.top_p is None else request.top_p,
        min_p=0.0 if greedy else request.min_p or 0.0,
        repetition_penalty=request.repetition_penalty or 1.0,
        presence_penalty=request.presence_penalty or 0.0,
        frequency_penalty=request.frequency_penalty or 0.0,
        logit_bias={int(token): value for token, value in (request.logit_bias or {}).items()},
        seed=None if request.seed is None else request.seed % SEEDS,
        stop=_stops(request.stop),
        stop_token_ids=tuple(request.stop_token_ids or ()),
        max_tokens=max_tokens,
        ignore_eos=request.ignore_eos,
        logprobs=logprobs,
    )


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, str) else tuple(stop)
