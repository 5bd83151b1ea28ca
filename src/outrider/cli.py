"""The command line: declares the commands and their options, and turns what goes wrong into one line.

Nothing heavy is imported before a command runs, so ``--help`` starts in a blink.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from outrider import __version__
from outrider.commands import doctor_options as d
from outrider.commands import options as o
from outrider.commands import serve_options as s
from outrider.commands.exit_codes import INTERRUPTED
from outrider.commands.groups import spread
from outrider.commands.train_app import train
from outrider.errors import OutriderError
from outrider.registry import DRAFTERS

BAD_INPUT = 2
BROKEN_PIPE = 141
ENGINE_PACKAGES = ("jinja2", "tokenizers", "torch")  # of the extra "engine"
EXIT_CODES = (
    "Exit codes: 0 fine; 1 compare found a real difference between texts, repair found that nothing works, or doctor "
    "found something; 2 bad input, said in one line, or nothing that doctor could examine; 130 interrupted."
)
# Plain help: drawing boxes would double the time that --help takes.
_PLAIN = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}

app = typer.Typer(name="outrider", epilog=EXIT_CODES, **_PLAIN)  # type: ignore[arg-type]
models = typer.Typer(help="Which models are here, fetching one, and what one is.", **_PLAIN)  # type: ignore[arg-type]
app.add_typer(models, name="models")
app.add_typer(train, name="train")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"outrider {__version__}")
        raise typer.Exit


@app.callback()
def outrider(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    """Speculative decoding that is exact, fast, and explains itself.

    Try it without a GPU: outrider demo
    """
    del version, debug  # read before the commands run


@app.command()
@spread
def generate(
    model: o.Model,
    prompt: Annotated[str | None, typer.Argument(help="The text to continue; - reads it from standard input.")] = None,
    *,
    file: Annotated[Path | None, typer.Option("--file", help="Read the prompt from here.")] = None,
    chat: Annotated[bool, typer.Option("--chat", help="The prompt is the user's turn of a conversation.")] = False,
    system: Annotated[str | None, typer.Option("--system", help="System turn; with --chat.")] = None,
    drafter: Annotated[str, typer.Option("--drafter", help=f"What proposes: {', '.join(DRAFTERS)}.")] = "none",
    drafting: o.Drafting,
    loading: o.Loading,
    load: Annotated[o.Load, typer.Option("--load", help="dummy: random weights, for shapes and speed.")] = o.Load.real,
    max_len: o.MaxLen = None,
    sampling: o.Sampling,
    logprobs: Annotated[
        int | None, typer.Option("--logprobs", help="With --json: report this many alternatives.")
    ] = None,
    trace: o.Trace = None,
    as_json: o.Json = False,
) -> None:
    """Continue a prompt, as it comes; accepted draft tokens are in colour."""
    from outrider.commands import generate as command

    source = command.Source(argument=prompt, file=file, chat=chat, system=system)
    request = command.Request(
        model=model,
        source=source,
        drafter=drafter,
        drafting=drafting,
        loading=loading,
        weights=load.value,
        max_len=max_len,
        trace=trace,
        as_json=as_json,
    )
    raise typer.Exit(command.run(request, sampling.params(logprobs=logprobs)))


@app.command()
@spread
def compare(
    model: o.Model,
    prompts: Annotated[list[str] | None, typer.Argument(help="Prompts, beside those of --prompts.")] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--prompts", help='JSONL: rows with "prompt", or "turns" (the first is taken).'),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Only the first N prompts.")] = None,
    drafter: Annotated[
        str, typer.Option("--drafter", metavar="A,B", help=f"Against plain decoding: {', '.join(DRAFTERS)}.")
    ] = "ngram",
    chat: Annotated[
        bool | None,
        typer.Option("--chat/--no-chat", help="As a conversation; default: if there is a template."),
    ] = None,
    drafting: o.Drafting,
    loading: o.Loading,
    sampling: o.Sampling = o.Sampling(max_tokens=128),
    trace: o.Trace = None,
    as_json: o.Json = False,
) -> None:
    """Decode prompts with and without drafters: speed, acceptance, and whether texts are equal."""
    from outrider.commands import compare as command

    request = command.Request(
        model=model,
        prompts=prompts or (),
        file=file,
        limit=limit,
        drafters=drafter,
        chat=chat,
        drafting=drafting,
        loading=loading,
        trace=trace,
        as_json=as_json,
    )
    raise typer.Exit(command.run(request, sampling.params()))


@app.command()
def trace(
    file: Annotated[Path, typer.Argument(help="Written by generate or compare with --trace.", show_default=False)],
    *,
    number: Annotated[
        int | None, typer.Option("--round", metavar="N", min=1, help="Draw the tree of this round, from 1.")
    ] = None,
    prompt: Annotated[
        int | None, typer.Option("--prompt", metavar="N", min=1, help="Of this prompt alone, from 1.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Show what a trace holds: acceptance by depth, how well probabilities were foreseen, a drawn tree."""
    from outrider.commands import trace as command

    command.run(command.Request(file=file, round=number, prompt=prompt, as_json=as_json))


@app.command()
@spread
def repair(
    drafter: Annotated[str, typer.Argument(help="A folder of safetensors, or owner/name on the hub.")],
    *,
    target: Annotated[str, typer.Option("--target", metavar="MODEL", help="The model it drafts for.")],
    file: Annotated[
        Path | None,
        typer.Option("--prompts", help="JSONL, as for compare; a few built-in prompts if left out."),
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of each text that is compared with.")] = 128,
    mask_token: Annotated[
        list[int] | None,
        typer.Option("--mask-token", metavar="ID", help="Try this one too; repeatable.", show_default=False),
    ] = None,
    window: Annotated[
        list[int] | None,
        typer.Option("--window", metavar="N", help="Try this sliding window too; repeatable.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write here instead of config.repaired.json beside the weights.")
    ] = None,
    loading: o.Loading,
    as_json: o.Json = False,
) -> None:
    """Find a drafter's config by experiment, and say which keys were measured."""
    from outrider.commands import repair as command

    request = command.Request(
        drafter=drafter,
        target=target,
        file=file,
        max_tokens=max_tokens,
        mask_tokens=mask_token or (),
        windows=window or (),
        out=out,
        loading=loading,
        as_json=as_json,
    )
    raise typer.Exit(command.run(request))


@app.command()
def demo() -> None:
    """Decode a small real model on this machine with and without drafts, and say what it gained."""
    from outrider.commands import demo as command

    raise typer.Exit(command.run())


@models.command("list")
def models_list(*, as_json: o.Json = False) -> None:
    """List the models that are known by name, and those that need no network."""
    from outrider.commands import models as command

    command.run_list(as_json=as_json)


@models.command("pull")
def models_pull(model: o.Model) -> None:
    """Fetch a model, unless it is here, and say where it is."""
    from outrider.commands import models as command

    command.run_pull(model)


@models.command("show")
def models_show(model: o.Model, *, as_json: o.Json = False) -> None:
    """Show a model's shape and the memory it needs, from the headers of its files alone."""
    from outrider.commands import models as command

    command.run_show(model, as_json=as_json)


@app.command()
def inspect(
    drafter: Annotated[str, typer.Argument(help="A folder, a GGUF file, or owner/name on the hub.")],
    *,
    target: Annotated[
        str | None, typer.Option("--target", metavar="MODEL", help="Say whether it fits this one.", show_default=False)
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="KEY", help="Pass over this key; repeatable.", show_default=False),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Show what a draft model is, whether it fits a target, and the flags that run it as trained elsewhere."""
    from outrider.commands import inspect as command

    raise typer.Exit(command.run(command.Request(drafter=drafter, target=target, allow=allow or (), as_json=as_json)))


@app.command()
@spread
def doctor(
    url: Annotated[
        str | None,
        typer.Argument(help="A running vLLM, SGLang or llama.cpp server; it is only read.", show_default=False),
    ] = None,
    *,
    known: d.Known,
    written: d.Written,
    checking: d.Checking,
    rules: Annotated[bool, typer.Option("--list", help="Instead: list the rules.", show_default=False)] = False,
    loading: o.Loading,
) -> None:
    """Say why acceptance or speed is low, how sure that is, what it costs, and what can be done.

    Models that are named are looked at by their files' headers. The pair itself is run, healthy and with each fault put
    in (DFlash; needs torch), with --prompts, or when --drafter and --target are all that is given.

    Exit codes: 0 nothing found, 1 findings, 2 nothing could be examined.
    """
    if rules:
        from outrider.commands import explain

        explain.run_list()
        return
    if checking.lossless is not None:
        from outrider.commands import doctor_lossless

        code = doctor_lossless.run(checking.lossless, checking.reference, as_json=written.as_json)
        raise typer.Exit(code)
    from outrider.commands import doctor as command

    raise typer.Exit(command.run(command.Request(url=url, known=known, written=written, loading=loading)))


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
def explain(code: Annotated[str, typer.Argument(help="A rule's code, as outrider doctor --list has them.")]) -> None:
    """Print the page of a rule of the doctor: what it finds, how, what confirms it, what to do."""
    from outrider.commands import explain as command

    command.run(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code. What goes wrong is one line on standard error."""
    wanted, debug = _without_debug(arguments)
    try:
        code = get_command(app)(wanted or ["--help"], prog_name="outrider", standalone_mode=False)
    except OutriderError as error:
        return _fail(str(error), debug=debug)
    except BrokenPipeError:
        return _silence()
    except SystemExit:  # how typer ends when the reader of our output has gone
        return _silence()
    except Exception as error:  # noqa: BLE001 -- the outermost place: the user gets a line in any case
        return _fail(_unforeseen(error), debug=debug)
    if code == INTERRUPTED:
        _say("interrupted")
    return int(code or 0)


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Take ``--debug`` out, wherever it stands before a ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    head = [word for word in arguments[:end] if word != "--debug"]
    return [*head, *arguments[end:]], len(head) < end


def _unforeseen(error: Exception) -> str:
    """Return the line for an exception that is not ours; those of the option parser explain themselves."""
    if hasattr(error, "format_message"):
        message = " ".join(str(error.format_message()).split())
        return f"{message if message.endswith(('.', '?')) else message + '.'} See --help."
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in ENGINE_PACKAGES:
        return f"This command needs the package {error.name}, which is not installed: pip install 'outrider[engine]'."
    return f"unexpected {type(error).__name__}: {error}; run again with --debug for the traceback"


def _fail(message: str, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    _say(f"error: {message}")
    return BAD_INPUT


def _say(message: str) -> None:
    sys.stderr.write(" ".join(message.split()) + "\n")


def _silence() -> int:
    """Let the rest of the output go nowhere: its reader has gone, and the flush at exit must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def main() -> None:
    """Entry point of the ``outrider`` command."""
    sys.exit(run(sys.argv[1:]))
