"""The options of ``outrider doctor``, in groups. Imported when the command line starts: nothing heavy here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from outrider.commands.options import Json, option


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a deployment; all of it is put together."""

    evidence: Annotated[
        Path | None, option("--evidence", metavar="FILE", text="An evidence file, YAML or JSON (docs/evidence.md).")
    ] = None
    log: Annotated[
        list[Path] | None, option("--log", metavar="FILE", text="A server's log, or a part of it; repeatable.")
    ] = None
    command: Annotated[
        list[str] | None,
        option("--command", metavar="TEXT|@FILE", text="A launch command as it was typed, or @FILE; repeatable."),
    ] = None
    drafter: Annotated[str | None, option("--drafter", metavar="D", text="A folder, or owner/name on the hub.")] = None
    target: Annotated[str | None, option("--target", metavar="T", text="Likewise; for both see above.")] = None
    prompts: Annotated[
        Path | None,
        option("--prompts", metavar="FILE", text="JSONL, as for compare: run the pair on these, with each fault."),
    ] = None
    same_prompts: Annotated[
        bool,
        option(
            "--same-prompts",
            text="The server was measured on the prompts of --prompts, greedy, 128 tokens each: shows smaller faults.",
        ),
    ] = False
    probe: Annotated[
        bool, option("--probe", text="Send URL a few requests; without it nothing is asked that costs a token.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Written:
    """Where the verdict goes beside the terminal, and how much of it."""

    as_json: Json = False
    markdown: Annotated[Path | None, option("--markdown", metavar="FILE", text="Write the report as Markdown.")] = None
    html: Annotated[Path | None, option("--html", metavar="FILE", text="Write it as one page to send.")] = None
    redact: Annotated[
        bool, option("--redact", text="Leave out hosts, users, folders, addresses and keys, on every output.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Checking:
    """The check of a server's text."""

    lossless: Annotated[
        str | None,
        option("--lossless", metavar="URL", text="Instead: is this server's text the target's own? (docs/lossless.md)"),
    ] = None
    reference: Annotated[
        str | None, option("--reference", metavar="URL", text="With --lossless: a server without speculation.")
    ] = None
