"""``outrider train``: the commands of training, one small function each. Nothing heavy is imported before one runs."""

from pathlib import Path
from typing import Annotated

import typer

from outrider.commands import options as o
from outrider.commands.groups import spread
from outrider.commands.train_dflash_options import Learning, Making, Running
from outrider.commands.train_export_options import Format, StoredDtype
from outrider.commands.train_options import Answers, From, Remote

train = typer.Typer(
    help="Train a drafter: data, training, report.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@train.callback()
def group() -> None:
    """Train a drafter: data, training, report."""


@train.command("data")
@spread
def data(
    model: o.Model,
    *,
    source: From,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where shards go; a run that stopped goes on.")],
    answers: Answers,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens",
            metavar="TOTAL",
            min=1,
            show_default=False,
            help="Answer on, with other draws, to so many tokens; if left out, each prompt once.",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch", min=1, show_default=False, help="Answers at once; 16 on a CPU, 1024 on a GPU, 32 of a server."
        ),
    ] = None,
    remote: Remote,
    loading: o.Loading,
    as_json: o.Json = False,
) -> None:
    """Have prompts answered by a model, as data for training its drafter."""
    from outrider.commands import train_data as command

    request = command.Request(
        model=model,
        source=source,
        out=out,
        answers=answers,
        tokens=tokens,
        batch=batch,
        remote=remote,
        loading=loading,
        as_json=as_json,
    )
    raise typer.Exit(command.run(request))


@train.command("dflash")
@spread
def dflash(
    model: o.Model,
    folder: Annotated[Path, typer.Argument(metavar="DATA", help="Written by train data.", show_default=False)],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Checkpoints and log.", show_default=False)],
    running: Running,
    making: Making,
    learning: Learning,
    loading: o.Loading,
    as_json: o.Json = False,
) -> None:
    """Train a DFlash drafter on what the model wrote; several processes when started by torchrun."""
    from outrider.commands import train_dflash as command

    request = command.Request(
        model=model,
        data=folder,
        out=out,
        making=making,
        learning=learning,
        running=running,
        loading=loading,
        as_json=as_json,
    )
    raise typer.Exit(command.run(request))


@train.command("export")
def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Written by train dflash.", show_default=False)],
    *,
    form: Annotated[
        Format, typer.Option("--format", help="zlab: vLLM, SGLang, Outrider; speculators: vLLM; gguf: llama.cpp.")
    ] = Format.zlab,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="A new folder, or an empty one.", show_default=False)
    ],
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", min=0, help="Of this checkpoint; the newest if left out.")
    ] = None,
    dtype: Annotated[StoredDtype, typer.Option("--dtype", help="Of the stored weights.")] = StoredDtype.bfloat16,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="MODEL", show_default=False, help="Its files, where the run names others than are here."
        ),
    ] = None,
    license_id: Annotated[
        str | None,
        typer.Option("--license", metavar="ID", show_default=False, help="For the card; the target's if left out."),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Write a trained drafter in the format of an engine, with a card, and read it back."""
    from outrider.commands import train_export as command

    request = command.Request(
        run=folder,
        format=form,
        out=out,
        step=step,
        dtype=dtype,
        target=target,
        license=license_id,
        as_json=as_json,
    )
    raise typer.Exit(command.run(request))


@train.command("report")
def report(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|FILE...",
            help="A run's folder, or its log: ours, trainer_state.json, JSON lines, CSV, text.",
            show_default=False,
        ),
    ],
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", show_default=False, help="Write a page to send.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", show_default=False, help="Draw the curves.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Say whether a run has converged, improves, is over-fitted or broken (exit code 1 for both), from its logs."""
    from outrider.commands import train_report as command

    raise typer.Exit(command.run(command.Request(places=places, html=html, plot=plot, as_json=as_json)))
