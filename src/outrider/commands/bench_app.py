"""``outrider bench``: its commands and their options. Imported when the command line starts: nothing heavy here."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from outrider.commands import options as o
from outrider.commands import serve_options as s
from outrider.commands.groups import spread
from outrider.commands.options import option
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.commands.bench import Asking, Writing

bench = typer.Typer(  # plain help, as everywhere
    help="Measure servers under load, each way of drafting against the engine's plain decoding.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
KINDS = "chat, code, mathematics, summary, translation, editing, extraction, story"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked, and how often."""

    prompts: Annotated[
        Path | None, option("--prompts", metavar="FILE", text="JSONL, as for compare; prompts of our own if left out.")
    ] = None
    kind: Annotated[list[str] | None, option("--kind", metavar="K", text=f"Only these: {KINDS}; repeatable.")] = None
    each: Annotated[
        int | None, option("--each", metavar="N", text="Prompts of each kind; 4, of a file all.", min=1)
    ] = None
    max_tokens: Annotated[int, option("--max-tokens", text="Of an answer; 128.", min=2)] = 128
    temperature: Annotated[float, option("--temperature", text="0, greedy, if left out.", min=0.0)] = 0.0
    concurrency: Annotated[str, option("--concurrency", metavar="N,M", text="Requests in flight; 1.")] = "1"
    rate: Annotated[
        float | None,
        option("--rate", metavar="R", text="Instead: R requests a second that arrive at random.", min=0.001),
    ] = None
    chat: Annotated[bool, option("--chat/--no-chat", text="With the model's chat template; yes.")] = True
    repeats: Annotated[int, option("--repeats", metavar="N", text="Each on a server started anew; 2.", min=1)] = 2
    warmup: Annotated[int, option("--warmup", metavar="N", text="Requests before any is timed; 2.", min=0)] = 2
    seed: Annotated[int, option("--seed", text="Of the order, of arrivals and of sampling; 0.")] = 0
    name: Annotated[str, option("--name", text="Of the result.")] = "bench"
    out: Annotated[Path, option("--out", metavar="FILE", text="The result, as JSON; bench.json.")] = Path("bench.json")
    plot: Annotated[Path | None, option("--plot", metavar="FILE", text="Speed-ups as .svg or .png.")] = None
    as_json: o.Json = False


@bench.command("run")
@spread
def bench_run(
    model: o.Model,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[-- WORDS]", help="For the engine, as they are.", show_default=False)
    ] = None,
    *,
    engine: Annotated[
        str | None, typer.Option("--engine", help="vllm, sglang or llama.cpp.", show_default=False)
    ] = None,
    python: Annotated[
        Path | None, option("--python", metavar="FILE", text="Python of the environment that holds the engine.")
    ] = None,
    arm: Annotated[
        list[str] | None,
        option("--arm", metavar="M[:K]", text="Against plain decoding: ngram:5, dflash:7, mtp:3; repeatable."),
    ] = None,
    drafter: Annotated[
        str | None, option("--drafter", metavar="D", text="The draft model of arms that have one.")
    ] = None,
    prefix_caching: Annotated[
        bool, option("--prefix-caching", text="Leave it on; else it is off in all arms.")
    ] = False,
    patience: Annotated[float, option("--patience", metavar="S", text="Until a server is given up; 1800.")] = 1800.0,
    spread_over: s.Spread,
    asked: Asked,
) -> None:
    """Start an engine for each arm in turn, ask it the same prompts, and say what drafting brought.

    Exit codes: 0 fine, 1 an arm broke off (what was measured is kept), 2 bad input.
    """
    from outrider.commands import bench as command

    request = command.Request(
        model=model, engine=engine, python=python, arms=arm or (), drafter=drafter, spread=spread_over,
        patience=patience, prefix_caching=prefix_caching, url=None, asking=_asking(asked), writing=_writing(asked),
        more=more or (),
    )  # fmt: skip
    raise typer.Exit(command.run(request))


@bench.command("url")
@spread
def bench_url(
    url: Annotated[str, typer.Argument(help="A server that runs already.")],
    *,
    asked: Asked,
) -> None:
    """Measure a server that somebody started: speed, latencies, acceptance; without a base there is no speed-up."""
    from outrider.commands import bench as command

    request = command.Request(
        model=url, engine=None, python=None, arms=(), drafter=None, spread=s.Spread(), patience=0.0,
        prefix_caching=True, url=url, asking=_asking(asked), writing=_writing(asked), more=(),
    )  # fmt: skip
    raise typer.Exit(command.run(request))


@bench.command("step")
def bench_step(
    *,
    shapes: Annotated[
        str, typer.Option("--shapes", metavar="NAME|FILE", help="qwen3.6-27b, or a JSON file with target and drafter.")
    ] = "qwen3.6-27b",
    load: Annotated[
        o.Load, typer.Option("--load", help="dummy, the only one: random weights, for the times alone.")
    ] = o.Load.dummy,
    method: Annotated[
        str, typer.Option("--method", metavar="A,B", help="plain, mtp:K, dflash:K, ddtree:N.")
    ] = "plain,mtp:3,dflash:15,ddtree:63",
    context: Annotated[str, typer.Option("--context", metavar="N,M", help="Committed tokens of each row.")] = "512",
    batch: Annotated[str, typer.Option("--batch", metavar="N,M", help="Rows at once.")] = "1",
    rounds: Annotated[int, typer.Option("--rounds", min=2, help="That are timed; the median counts.")] = 100,
    lengths: Annotated[
        str, typer.Option("--lengths", metavar="L,M", help="Acceptance lengths that turn rounds into tokens a second.")
    ] = "2,3,4,5,6.45,8",
    dtype: Annotated[
        str, typer.Option("--dtype", help="float32, bfloat16 or float8 weights; auto as the device likes it.")
    ] = "auto",
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, ...; auto takes a GPU if any.")] = "auto",
    plans: Annotated[
        Path | None, option("--plans", metavar="FILE", text="How products are cut, as measured (docs/gpu.md).")
    ] = None,
    profile: Annotated[bool, option("--profile", text="Say which kernels take the time.")] = False,
    out: Annotated[Path | None, option("--out", metavar="FILE", text="The result, as JSON.")] = None,
    as_json: o.Json = False,
) -> None:
    """Time rounds at a model's real shapes with random weights: milliseconds by way of drafting, and their floor."""
    from outrider.commands import bench_step as command

    if load is not o.Load.dummy:
        raise UsageError("--load real: rounds are timed with random weights; leave --load out, or say dummy.")
    request = command.Request(
        shapes=shapes, methods=method, contexts=context, batches=batch, rounds=rounds, lengths=lengths, dtype=dtype,
        device=device, plans=plans, profile=profile, out=out, as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(command.run(request))


@bench.command("compare")
def bench_compare(
    before: Annotated[Path, typer.Argument(help="Written by bench run.")],
    after: Annotated[Path, typer.Argument(help="Likewise.")],
) -> None:
    """Show two results side by side, and what else differs between them."""
    from outrider.commands import bench as command

    raise typer.Exit(command.compare(before, after))


def _asking(asked: Asked) -> "Asking":
    from outrider.commands.bench import Asking

    each = asked.each if asked.each is not None or asked.prompts is not None else 4
    return Asking(
        prompts=asked.prompts, kinds=asked.kind or (), each=each, max_tokens=asked.max_tokens,
        temperature=asked.temperature, concurrency=asked.concurrency, rate=asked.rate, chat=asked.chat,
        repeats=asked.repeats, warmup=asked.warmup, seed=asked.seed,
    )  # fmt: skip


def _writing(asked: Asked) -> "Writing":
    from outrider.commands.bench import Writing

    return Writing(name=asked.name, out=asked.out, plot=asked.plot, as_json=asked.as_json)
