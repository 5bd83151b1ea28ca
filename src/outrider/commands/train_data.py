"""``outrider train data``: prompts answered by the target, in shards for training its drafter."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.commands.options import Loading
from outrider.commands.screen import stderr, stdout, waiting
from outrider.commands.train_bar import bar
from outrider.commands.train_options import Answers, From, Remote
from outrider.commands.train_target import Target, answering, open_target
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.train.encoding import Encoder
    from outrider.train.manifest import Manifest
    from outrider.train.prompts import Prompts
    from outrider.train.rows import Rows
    from outrider.train.work import Mix

LONGEST = 1024  # tokens of prompt and answer together, unless said otherwise
SHARD_SAMPLES = 4096  # of SmolLM2's answers some 6 MB, and a few seconds of a GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for."""

    model: str
    source: From
    out: Path
    answers: Answers
    tokens: int | None
    batch: int | None
    remote: Remote
    loading: Loading
    as_json: bool


def run(request: Request) -> int:
    """Run the command; return its exit code."""
    from outrider.train.encoding import Encoder
    from outrider.train.work import Mix, parse_weights

    mix, weights = Mix.parse(request.answers.temperature), parse_weights(request.source.weight or ())
    rows = _rows(request)
    target = open_target(request.model, loading=request.loading, remote=request.remote)
    encoder = Encoder(target.tokenizer, thinking=request.answers.thinking)
    prompts = _prompts(request, target, encoder, rows)
    manifest = _manifest(request, target, prompts, mix, weights)
    seconds, new = _write(request, target, prompts, mix, manifest)
    _print(request, seconds, new)
    return 0


def _rows(request: Request) -> "list[Rows]":
    """Read what is on disk or on the hub, before a model is loaded for it."""
    from outrider.train.rows import read_file, read_hub

    source = request.source
    if not (source.prompts or source.hub or source.own):
        raise UsageError("There are no prompts: give --prompts FILE, --hub NAME:COLUMN or --self N.")
    if source.own and request.remote.server is not None:
        raise UsageError("--self is written by the model on this machine and cannot go with --server.")
    files = [read_file(path, limit=source.limit) for path in source.prompts or ()]
    return [*files, *(read_hub(name, limit=source.limit) for name in source.hub or ())]


def _prompts(request: Request, target: Target, encoder: "Encoder", rows: "list[Rows]") -> "Prompts":
    """Encode the rows and those that the model writes itself."""
    from outrider.train.own_prompts import Wanted, own_prompts
    from outrider.train.prompts import gather

    max_len, max_tokens = _max_len(request, target), request.answers.max_tokens
    if target.decoder is not None and request.source.own:
        wanted = Wanted(count=request.source.own, seed=request.answers.seed, batch=target.batch(request.batch))
        with bar(stderr(), "writing prompts", unit="prompts", total=wanted.count) as shown:
            own = own_prompts(request.out, target.decoder, encoder, wanted, lambda: shown.add(1, 1))
        rows = [*rows, own]
    with waiting(stderr()) as telling:
        telling.spin("Reading prompts")
        return gather(rows, encoder, longest=max_len - max_tokens, report=telling.say)


def _max_len(request: Request, target: Target) -> int:
    max_len = request.answers.max_len or min(target.context, LONGEST)
    if request.answers.max_tokens >= max_len:
        raise UsageError(
            f"--max-tokens {request.answers.max_tokens} leaves no room for a prompt: prompt and answer together have "
            f"{max_len} tokens. Lower it, or raise --max-len."
        )
    return max_len


def _manifest(
    request: Request, target: Target, prompts: "Prompts", mix: "Mix", weights: dict[str, float]
) -> "Manifest":
    from outrider.provenance import provenance
    from outrider.train import manifest as m
    from outrider.train.fingerprint import fingerprints

    answers = request.answers
    return m.Manifest(
        target=m.Target(
            name=request.model, files=fingerprints(target.checkpoint), vocab_size=target.tokenizer.vocab_size
        ),
        settings=m.Settings(
            temperatures=list(zip(mix.temperatures, mix.shares, strict=True)),
            top_k=answers.top_k,
            top_p=answers.top_p,
            max_tokens=answers.max_tokens,
            max_len=_max_len(request, target),
            max_repeats=answers.max_repeats,
            thinking=answers.thinking,
            seed=answers.seed,
            weights=weights,
            prompts=prompts.digest,
            server=request.remote.server,
            dtype=target.dtype,
            shard_samples=SHARD_SAMPLES,
        ),
        rows=prompts.counts,
        sources=[
            m.SourceCounts(name=name, prompts=len(of))
            for name, of in zip(prompts.sources, prompts.by_source, strict=True)
        ],
        provenance=provenance(seed=answers.seed),
    )


def _write(request: Request, target: Target, prompts: "Prompts", mix: "Mix", manifest: "Manifest") -> tuple[float, int]:
    """Have the answers written; return the seconds it took and the response tokens that are new."""
    from outrider.train.data import Told, make_data, open_folder
    from outrider.train.work import Plan

    settings, once = manifest.settings, request.tokens is None
    plan = Plan(prompts, mix, seed=settings.seed, weights=settings.weights, once=once)
    out = open_folder(request.out, manifest)
    before = out.manifest.response_tokens
    total, done = (plan.num_items, out.manifest.next) if once else (request.tokens, before)
    begun = time.perf_counter()
    writer = answering(target, settings, remote=request.remote, batch=request.batch, items=plan.num_items)
    with bar(stderr(), "writing answers", unit="tokens", total=total, done=done) as shown:

        def watch(told: Told) -> None:
            shown.add(told.items if once else told.tokens, told.tokens)

        make_data(plan, writer, out, tokens=request.tokens, watch=watch)
    return time.perf_counter() - begun, out.manifest.response_tokens - before


def _print(request: Request, seconds: float, new: int) -> None:
    from outrider.commands.train_data_print import DataResult, print_data
    from outrider.train.manifest import read_manifest

    manifest = read_manifest(request.out)
    result = DataResult(
        folder=str(request.out),
        samples=manifest.samples,
        response_tokens=manifest.response_tokens,
        new_response_tokens=new,
        seconds=seconds,
        tokens_per_second=new / seconds,
        manifest=manifest,
    )
    if request.as_json:
        sys.stdout.write(result.model_dump_json(indent=1) + "\n")
    else:
        print_data(stdout(), result)
