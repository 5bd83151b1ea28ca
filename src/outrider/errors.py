"""What can go wrong, as one tree of exceptions.

OutriderError                 anything we raise on purpose; the command line prints it as one line, exit code 2
├── UsageError                the request contradicts itself or the model: settings, prompt, names
│   └── UnknownNameError      a name that is in no table; says the nearest
├── CheckpointError           a model's files: missing, truncated, corrupt, contradictory, not understood
│   └── UnsupportedError      understood, and refused: a variant this version cannot run exactly
├── FetchError                a model could not be fetched: no network, gated, no space
└── VerificationError         a proposal that cannot be verified losslessly

A message says what was expected, what was found, where, and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class OutriderError(Exception):
    """Base of everything Outrider raises on purpose."""


class UsageError(OutriderError):
    """The request contradicts itself or the model."""


class UnknownNameError(UsageError):
    """A name that its table does not hold."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(name, names, n=1, cutoff=0.5)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"Unknown {kind} {name!r}.{guess} Known: {', '.join(names)}.")


class CheckpointError(OutriderError):
    """A model's files are missing, damaged or contradictory."""


class UnsupportedError(CheckpointError):
    """A variant that is understood and refused."""


class FetchError(OutriderError):
    """A model could not be fetched."""


class VerificationError(OutriderError):
    """A proposal that cannot be verified without changing the target's law."""
