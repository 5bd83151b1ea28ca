"""``outrider train``: the commands of training, one small function each. Nothing heavy is imported before one runs."""

from pathlib import Path
from typing import Annotated

import typer

from outrider.commands import options as o
from outrider.commands.groups import spread
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
