"""The options of ``outrider train data``, in groups. Imported when the command line starts: nothing heavy here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from outrider.commands.options import option


@dataclass(frozen=True, kw_only=True)
class From:
    """Where prompts come from; several places are mixed."""

    prompts: Annotated[
        list[Path] | None,
        option("--prompts", metavar="FILE", text='JSONL, may be gzipped: "prompt", "turns" or "messages"; repeatable.'),
    ] = None
    own: Annotated[
        int, option("--self", metavar="N", min=0, text="N prompts that the model writes itself, from an empty turn.")
    ] = 0
    hub: Annotated[
        list[str] | None,
        option("--hub", metavar="NAME:COLUMN", text="A data set on the hub, or NAME:COLUMN:SPLIT; repeatable."),
    ] = None
    limit: Annotated[
        int | None, option("--limit", metavar="N", min=1, text="At most N rows of each file and data set.")
    ] = None
    weight: Annotated[
        list[str] | None,
        option(
            "--weight",
            metavar="SOURCE=W",
            text="Prompts of this source (a row's key source, a file, self) count W times; repeatable.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Answers:
    """How answers are drawn, and how long they grow."""

    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="At most this many tokens of an answer.")] = 512
    max_len: Annotated[
        int | None,
        option(
            "--max-len",
            min=2,
            text="Of prompt and answer together; 1024 or the model's context if left out. Longer prompts are dropped.",
        ),
    ] = None
    temperature: Annotated[
        str,
        typer.Option("--temperature", metavar="MIX", help="TEMPERATURE:SHARE, ...; 0 is greedy."),
    ] = "0:0.4,0.7:0.3,1:0.3"
    top_k: Annotated[int, option("--top-k", min=0, text="Draw from the k likeliest words; 0 keeps all.")] = 0
    top_p: Annotated[
        float, option("--top-p", min=0.0, max=1.0, text="Draw from the likeliest words that hold this share.")
    ] = 1.0
    max_repeats: Annotated[
        int,
        option("--max-repeats", metavar="N", min=0, text="Cut an answer where 8 words come a further time after N."),
    ] = 0
    thinking: Annotated[
        bool | None,
        option("--thinking/--no-thinking", text="Passed to the chat template; left to it if left out."),
    ] = None
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the order of prompts and of all draws.")] = 0


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A server that answers in place of this machine."""

    server: Annotated[
        str | None, option("--server", metavar="URL", text="Ask an OpenAI-compatible server that runs the same model.")
    ] = None
    server_model: Annotated[
        str | None, option("--server-model", metavar="NAME", text="The model's name there, if there are several.")
    ] = None
