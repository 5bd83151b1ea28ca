"""``outrider generate``: one prompt, one text."""

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from outrider.commands.drafter_check import check_drafters
from outrider.commands.exit_codes import INTERRUPTED
from outrider.commands.opening import dtype_name, open_runner, sized
from outrider.commands.options import Drafting, Loading
from outrider.commands.prompt import as_chat, read_prompt
from outrider.commands.screen import stderr
from outrider.commands.streaming import nothing, run_text, shower
from outrider.commands.summary import print_summary
from outrider.commands.tracing import check_trace, open_trace
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.results import GenerationResult, TokenResult
    from outrider.runner import Prompt, Runner
    from outrider.transcript import Completion, Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the prompt comes from, and what it is."""

    argument: str | None
    file: Path | None
    chat: bool
    system: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for."""

    model: str
    source: Source
    drafter: str
    drafting: Drafting
    loading: Loading
    weights: Literal["real", "dummy"]
    max_len: int | None
    trace: Path | None
    as_json: bool


def run(request: Request, params: "SamplingParams") -> int:
    """Run the command; return its exit code."""
    drafting = check_drafters([request.drafter], request.drafting, request.model)
    check_trace(request)
    prompt = _prompt(request.source)
    runner = open_runner(
        request.model,
        drafter=request.drafter,
        drafting=drafting,
        loading=request.loading,
        weights=request.weights,
    )
    ids = runner.encode(prompt)
    runner = sized(runner, [ids], max_tokens=params.max_tokens, max_len=request.max_len)
    params = _seeded(params)
    completion = _complete(request, runner, ids, params)
    if request.as_json:
        record = result(request, runner, params, completion)
        sys.stdout.write(record.model_dump_json(indent=1) + "\n")
    else:
        sys.stdout.write("\n")
        sys.stdout.flush()
        seed = None if params.greedy else params.seed
        print_summary(stderr(), completion, seed=seed, repeats=_repeats(request, runner))
    return INTERRUPTED if completion.finish_reason == "cancelled" else 0


def _repeats(request: Request, runner: "Runner") -> bool:
    """Say whether a seed gives its text again: not where the clock decides how many tokens are drawn by the drafter."""
    return not runner.drafter.draws or request.drafting.draft_tokens is not None


def _complete(request: Request, runner: "Runner", ids: tuple[int, ...], params: "SamplingParams") -> "Completion":
    """Decode, with a trace where one was asked for."""
    with open_trace(request, [request.drafter], runner, params) as trace:
        if trace is not None:
            runner.engine.recorder = trace.recorder(request.drafter, 0)
        return run_text(runner, ids, params, nothing if request.as_json else shower())


def _prompt(source: Source) -> "Prompt":
    if source.system is not None and not source.chat:
        raise UsageError("--system is part of a conversation: add --chat, or drop it.")
    text = read_prompt(source.argument, source.file)
    return as_chat(text, source.system) if source.chat else text


def _seeded(params: "SamplingParams") -> "SamplingParams":
    """Draw the seed here where none was given, so that the text can be repeated."""
    from outrider.engine.uniforms import fresh_seed

    if params.greedy or params.seed is not None:
        return params
    return replace(params, seed=fresh_seed())


def result(
    request: Request, runner: "Runner", params: "SamplingParams", completion: "Completion"
) -> "GenerationResult":
    """Return the record that ``--json`` prints."""
    import torch

    from outrider.provenance import provenance
    from outrider.results import GenerationResult

    acceptance = completion.acceptance
    return GenerationResult(
        text=completion.text,
        finish_reason=completion.finish_reason,
        prompt_tokens=completion.prompt_tokens,
        tokens=[_token(runner, piece) for piece in completion.pieces],
        rounds=acceptance.num_rounds,
        acceptance_length=acceptance.length,
        acceptance_rate=acceptance.rate,
        position_rates=list(acceptance.position_rates),
        conditional_rates=list(acceptance.conditional_rates),
        seconds=completion.prefill_seconds + completion.decode_seconds,
        tokens_per_second=completion.tokens_per_second,
        model=request.model,
        drafter=request.drafter,
        drafting=runner.loaded.drafting,
        dtype=dtype_name(request.loading, runner),
        sampling=asdict(params),
        provenance=provenance(threads=torch.get_num_threads(), seed=params.seed),
    )


def _token(runner: "Runner", piece: "Piece") -> "TokenResult":
    from outrider.results import TokenResult, TopLogprob

    text = runner.tokenizer.token_text
    logprob = piece.logprob
    return TokenResult(
        id=piece.token,
        text=text(piece.token),
        source=piece.origin,
        depth=piece.depth,
        logprob=None if logprob is None else logprob.chosen,
        top_logprobs=None if logprob is None else [TopLogprob(id=i, text=text(i), logprob=v) for i, v in logprob.top],
    )
