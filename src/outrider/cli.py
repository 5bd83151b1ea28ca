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
from outrider.commands.bench_app import bench
from outrider.commands.exit_codes import INTERRUPTED
from outrider.commands.groups import spread
from outrider.commands.servers_app import servers
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
app.add_typer(bench, name="bench")
app.add_typer(servers)  # without a name: its commands stand beside the others


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
