"""What is asked of an engine that can be started."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from outrider.adapters.start.deployment import Command, Deployment, Draft
from outrider.adapters.start.offers import Offer


class Starter(Protocol):
    """One engine.

    Attributes:
        title: as people write it.
        checked: oldest and newest version that were looked at.
        offers: its methods.
        serves: whether it can be started as a server.
        health: the address that answers when it is ready.
        usual_port: where it listens if nothing is said.
        packages: names of the Python distributions that carry it.
    """

    title: ClassVar[str]
    checked: ClassVar[tuple[str, str]]
    offers: ClassVar[tuple[Offer, ...]]
    serves: ClassVar[bool]
    health: ClassVar[str]
    usual_port: ClassVar[int]
    packages: ClassVar[tuple[str, ...]]

    def program(self, python: Path | None) -> Sequence[str]:
        """Return the words that start it, from an environment if one is named."""
        ...

    def speculation(self, draft: Draft) -> tuple[str, ...] | None:
        """Return the flags with which it speculates so; None where it does not."""
        ...

    def command(self, deployment: Deployment, *, python: Path | None = None) -> Command:
        """Return what starts a deployment.

        Raises:
            UsageError: it cannot be run so by this engine; says why.
        """
        ...


def beside(python: Path, name: str) -> Path | None:
    """Return the program of this name in an environment; None where there is none."""
    found = python.parent / name
    return found if found.is_file() else None
