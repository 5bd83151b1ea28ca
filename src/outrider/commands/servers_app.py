"""``outrider serve``, ``watch`` and ``plan``: their options. Imported early: nothing heavy here."""

from typing import Annotated

import typer

from outrider.commands import options as o
from outrider.commands import serve_options as s
from outrider.commands.groups import spread

servers = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@servers.command()
@spread
def serve(
    model: o.Model,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[-- WORDS]", help="For the engine, as they are.", show_default=False)
    ] = None,
    *,
    engine: Annotated[
        str | None, typer.Option("--engine", help="vllm, sglang or llama.cpp.", show_default=False)
    ] = None,
    drafted: s.Drafted,
    spread_over: s.Spread,
    how: s.Run,
    watched: s.Watched,
) -> None:
    """Check a pair, start an engine of others with it, and watch it until Ctrl-C ends both."""
    from outrider.commands import serve as command

    request = command.Request(
        engine=engine,
        model=model,
        drafted=drafted,
        spread=spread_over,
        run=how,
        watched=watched,
        more=more or (),
    )
    raise typer.Exit(command.run(request))


@servers.command()
@spread
def watch(
    url: Annotated[str, typer.Argument(help="A running vLLM, SGLang or llama.cpp server; it is only read.")],
    *,
    drafter: Annotated[str | None, o.option("--drafter", metavar="D", text="Its drafter, for the doctor.")] = None,
    target: Annotated[str | None, o.option("--target", metavar="T", text="Its target, for the doctor.")] = None,
    launched: Annotated[
        str | None, o.option("--command", metavar="TEXT", text="Its launch command, for the doctor.")
    ] = None,
    window: Annotated[float, o.option("--window", metavar="S", text="Seconds that rates are formed of; 60.")] = 60.0,
    watched: s.Watched,
) -> None:
    """Show a server's speed, acceptance and curve as they change; alarm where the curve changes its shape.

    Exit codes: 0 no alarm, 1 alarms, 130 interrupted.
    """
    from outrider.commands import watch as command
    from outrider.commands.live import Showing

    showing = Showing(every=watched.every, seconds=watched.seconds, out=watched.out, port=watched.export)
    request = command.Request(
        url=url, drafter=drafter, target=target, command=launched, window_s=window, showing=showing
    )
    raise typer.Exit(command.run(request))


@servers.command()
def plan(
    model: o.Model,
    *,
    gpu: Annotated[str | None, o.option("--gpu", metavar="NAME", text="h200, h100, a100, rtx4090, ...")] = None,
    gpus: Annotated[int, o.option("--gpus", metavar="N", text="How many of them; 1.", min=1)] = 1,
    here: Annotated[bool, o.option("--here", text="On this machine, as it is found.")] = False,
    drafter: Annotated[str | None, o.option("--drafter", metavar="D", text="A DFlash drafter that is there.")] = None,
    context: Annotated[int, o.option("--context", metavar="N", text="Tokens of a sequence; 4096.", min=1)] = 4096,
    concurrency: Annotated[int, o.option("--concurrency", metavar="N", text="Sequences at once; 1.", min=1)] = 1,
    accept: Annotated[
        list[str] | None,
        o.option("--accept", metavar="M[:K]=TAU", text="A measured acceptance length: mtp:3=2.65; repeatable."),
    ] = None,
    speed: Annotated[
        list[str] | None,
        o.option("--speed", metavar="M@ENGINE=N", text="Measured tokens a second: mtp@sglang=73.5; repeatable."),
    ] = None,
    engine: Annotated[
        list[str] | None,
        o.option("--engine", metavar="NAME[=VERSION]", text="vllm, sglang, llama.cpp, outrider; repeatable."),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Lay out the ways to decode a model on some hardware: speed, memory, risk, effort, and from where each pays."""
    from outrider.commands import plan as command

    request = command.Request(
        model=model,
        gpu=gpu,
        gpus=gpus,
        here=here,
        drafter=drafter,
        context=context,
        concurrency=concurrency,
        accept=accept or (),
        speed=speed or (),
        engine=engine or (),
        as_json=as_json,
    )
    raise typer.Exit(command.run(request))
