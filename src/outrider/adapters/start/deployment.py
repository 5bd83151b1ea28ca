"""What is to be started, engine by engine the same words; and the command that starts it."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from outrider.adapters.methods import Method
from outrider.errors import UsageError

WHOLE_BLOCK: tuple[Method, ...] = ("dflash", "dflash2", "dspark")
"""Methods whose drafter fills a block of masks in one pass."""
WITHOUT_MODEL: tuple[Method, ...] = ("mtp", "ngram")
"""Methods whose drafts come from the target's own checkpoint, or from the text."""
TARGET, DRAFTER = "TARGET", "DRAFTER"  # in commands, where none was named
_PLAIN = re.compile(r"[\w@%+=:,./~$-]+")  # words that stand without quotes; variables stay variables


@dataclass(frozen=True, slots=True)
class Draft:
    """What speculates.

    Attributes:
        method: by the evidence file's name.
        model: the drafter; None where the method has none, or nobody named it.
        tokens: drafted a round, the anchor not counted.
    """

    method: Method
    model: str | None
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """Over how many devices and hosts.

    Attributes:
        tensor, pipeline, data: devices a layer is cut over, stages, copies.
        hosts: addresses, the head first; empty for this machine alone.
        rank: which of them this is.
        form: how hosts find each other: by the engine's own rendezvous, as torchrun has it, or through Ray.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    hosts: tuple[str, ...] = ()
    rank: int = 0
    form: Literal["own", "ray"] = "own"

    def __post_init__(self) -> None:
        if min(self.tensor, self.pipeline, self.data) < 1:
            found = f"tensor {self.tensor}, pipeline {self.pipeline}, data {self.data}"
            raise UsageError(f"Parallelism is counted from 1; found {found}.")
        if not 0 <= self.rank < max(1, len(self.hosts)):
            raise UsageError(
                f"Host {self.rank}: expected one of 0 to {max(1, len(self.hosts)) - 1}, in the order of --hosts."
            )

    @property
    def devices(self) -> int:
        """All of them."""
        return self.tensor * self.pipeline * self.data

    @property
    def several(self) -> bool:
        """More than one host."""
        return len(self.hosts) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One server.

    Attributes:
        target: as it was named.
        draft: None for plain decoding.
        parallel: over what.
        quantisation: of the target, by the engine's name; None for what the checkpoint says.
        kv_dtype: of cached keys and values, by the engine's name; None for its usual one.
        max_len: longest sequence in tokens; None for the target's.
        hybrid: the target has recurrent layers.
        second_runner: the drafter needs vLLM's model runner V2.
        metrics: with ``/metrics``, which not every engine has unless it is told to.
        host, port: where it listens; None leaves it to the engine.
        more: words that are passed on as they are.
    """

    target: str = TARGET
    draft: Draft | None = None
    parallel: Parallel = field(default_factory=Parallel)
    quantisation: str | None = None
    kv_dtype: str | None = None
    max_len: int | None = None
    hybrid: bool = False
    second_runner: bool = False
    metrics: bool = False
    host: str | None = None
    port: int | None = None
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What starts a server.

    Attributes:
        words: program and arguments.
        environment: variables to set beside those there are.
        first: lines to be typed on this host before.
        elsewhere: lines for the other hosts, by address.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The command as it is typed."""
        return " ".join(
            [*(f"{key}={shlex.quote(value)}" for key, value in self.environment.items()), joined(self.words)]
        )


def joined(words: tuple[str, ...] | list[str]) -> str:
    """Return words as a shell reads them, quoted where they must be."""
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


def flags(**values: str | float | None) -> tuple[str, ...]:
    """Return ``--name value`` for each value that is there; underscores become dashes."""
    pairs = ((f"--{name.replace('_', '-')}", value) for name, value in values.items() if value is not None)
    return tuple(word for name, value in pairs for word in (name, str(value)))


def over(degree: int) -> int | None:
    """Return a degree of parallelism, None for 1, which goes without saying."""
    return degree if degree > 1 else None
