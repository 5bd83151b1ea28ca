"""``outrider generate``: one prompt, one text."""

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from outrider.commands.opening import dtype_name, open_runner, sized
from outrider.commands.options import check_drafter
from outrider.commands.prompt import as_chat, read_prompt
from outrider.commands.screen import stderr
from outrider.commands.streaming import nothing, run_text, shower
from outrider.commands.summary import print_summary
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.results import GenerationResult, TokenResult
    from outrider.runner import Prompt, Runner
    from outrider.transcript import Completion, Piece

INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for."""

    model: str
    prompt: str | None
    file: Path | None
    chat: bool
    system: str | None
    drafter: str
    dtype: str
    device: str
    weights: Literal["real", "dummy"]
    max_len: int | None
    as_json: bool


def run(request: Request, params: "SamplingParams") -> int:
    """Run the command; return its exit code."""
    check_drafter(request.drafter)
    prompt = _prompt(request)
    runner = open_runner(
        request.model,
        drafter=request.drafter,
        dtype=request.dtype,
        device=request.device,
        weights=request.weights,
    )
    ids = runner.encode(prompt)
    runner = sized(runner, [ids], max_tokens=params.max_tokens, max_len=request.max_len)
    params = _seeded(params)
    completion = run_text(runner, ids, params, nothing if request.as_json else shower())
    if request.as_json:
        record = result(request, runner, params, completion)
        sys.stdout.write(record.model_dump_json(indent=1) + "\n")
    else:
        sys.stdout.write("\n")
        sys.stdout.flush()
        print_summary(stderr(), completion, seed=None if params.greedy else params.seed)
    return INTERRUPTED if completion.finish_reason == "cancelled" else 0


def _prompt(request: Request) -> "Prompt":
    if request.system is not None and not request.chat:
        raise UsageError("--system is part of a conversation: add --chat, or drop it.")
    text = read_prompt(request.prompt, request.file)
    return as_chat(text, request.system) if request.chat else text


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
        dtype=dtype_name(request.dtype, runner),
        sampling=asdict(params),
        provenance=provenance(threads=torch.get_num_threads(), seed=params.seed),
    )


def _token(runner: "Runner", piece: "Piece") -> "TokenResult":
    from outrider.results import TokenResult, TopLogprob

    text = runner.tokenizer.token_text
    if piece.logprob is None:
        return TokenResult(id=piece.token, text=text(piece.token), source=piece.origin)
    return TokenResult(
        id=piece.token,
        text=text(piece.token),
        source=piece.origin,
        logprob=piece.logprob.chosen,
        top_logprobs=[TopLogprob(id=token, text=text(token), logprob=logprob) for token, logprob in piece.logprob.top],
    )
