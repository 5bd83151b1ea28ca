"""The options of ``outrider serve``, in groups. Imported when the command line starts: nothing heavy here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from outrider.adapters.start.deployment import Parallel
from outrider.commands.options import option


@dataclass(frozen=True, kw_only=True)
class Drafted:
    """What speculates."""

    drafter: Annotated[
        str | None, option("--drafter", metavar="D", text="Draft model: a folder, a GGUF file, or owner/name.")
    ] = None
    method: Annotated[
        str | None,
        option("--method", metavar="M", text="mtp, dflash, dspark, eagle3, ngram, ...; told by the drafter's files."),
    ] = None
    length: Annotated[
        int | None,
        option("--draft-length", metavar="K", text="Tokens drafted a round, the anchor not counted.", min=1),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Over which devices, and in which form."""

    tensor: Annotated[int, option("--tensor", metavar="N", text="Devices that a layer is cut over.", min=1)] = 1
    pipeline: Annotated[int, option("--pipeline", metavar="N", text="Stages of layers.", min=1)] = 1
    data: Annotated[int, option("--data", metavar="N", text="Copies of the model.", min=1)] = 1
    hosts: Annotated[
        str | None, option("--hosts", metavar="A,B", text="Addresses of all hosts, the head first; run it on each.")
    ] = None
    rank: Annotated[int, option("--rank", metavar="N", text="Which of --hosts this one is, from 0.", min=0)] = 0
    ray: Annotated[bool, option("--ray", text="vLLM's hosts find each other through Ray.")] = False
    quantisation: Annotated[
        str | None, option("--quantisation", metavar="Q", text="Of the target, by the engine's name.")
    ] = None
    kv_dtype: Annotated[
        str | None, option("--kv-dtype", metavar="T", text="Of cached keys and values, by the engine's name.")
    ] = None
    max_len: Annotated[int | None, option("--max-len", metavar="N", text="Longest sequence, in tokens.", min=1)] = None
    host: Annotated[str, option("--host", metavar="ADDRESS", text="Where it listens; 127.0.0.1 if left out.")] = (
        "127.0.0.1"
    )

    def parallel(self) -> Parallel:
        """Return them as the engines are told."""
        hosts = tuple(one.strip() for one in self.hosts.split(",")) if self.hosts else ()
        return Parallel(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            hosts=hosts,
            rank=self.rank,
            form="ray" if self.ray else "own",
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """How the server is run."""

    python: Annotated[
        Path | None, option("--python", metavar="FILE", text="Python of the environment that holds the engine.")
    ] = None
    port: Annotated[int | None, option("--port", metavar="N", text="Where it listens; the engine's usual one.")] = None
    log: Annotated[
        Path | None, option("--log", metavar="FILE", text="For what the server prints; a temporary file if left out.")
    ] = None
    patience: Annotated[
        float, option("--patience", metavar="S", text="Seconds until a server that does not answer is ended; 1800.")
    ] = 1800.0
    print_only: Annotated[bool, option("--print", text="Print the command, and start nothing.")] = False
    anyway: Annotated[bool, option("--anyway", text="Start also where the check refuses.")] = False


@dataclass(frozen=True, kw_only=True)
class Watched:
    """How a server is watched."""

    every: Annotated[float, option("--every", metavar="S", text="Seconds between two looks; 5.", min=0.1)] = 5.0
    seconds: Annotated[float | None, option("--for", metavar="S", text="End after so many seconds.")] = None
    out: Annotated[Path | None, option("--out", metavar="FILE", text="Add each look to this file, as JSON lines.")] = (
        None
    )
    export: Annotated[
        int | None, option("--export", metavar="PORT", text="Serve outrider_spec_* for Prometheus there.")
    ] = None
