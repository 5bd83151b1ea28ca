"""``--trace FILE``: from the words of a command line to an open trace."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from outrider.commands.opening import dtype_name
from outrider.commands.options import Drafting, Loading
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.runner import Runner
    from outrider.traces.format import TraceHeader
    from outrider.traces.writer import TraceWriter


class Traced(Protocol):
    """A request that may want a trace."""

    @property
    def model(self) -> str:
        """As the user named it."""

    @property
    def drafting(self) -> Drafting:
        """Draft model and settings."""

    @property
    def loading(self) -> Loading:
        """Form of the weights."""

    @property
    def trace(self) -> Path | None:
        """Where to; None for no trace."""


def check_trace(request: Traced) -> None:
    """Refuse a file that cannot be written, or is something else than an older trace, before a model is loaded.

    Raises:
        UsageError: says why.
    """
    if request.trace is not None:
        from outrider.traces.writer import check_writable

        check_writable(request.trace)
        _check_ours(request.trace)


def _check_ours(path: Path) -> None:
    """Refuse to replace a file that holds something else: a mistyped name must not cost a file of prompts."""
    from outrider.traces.reader import TraceReader

    if not path.is_file() or not path.stat().st_size:
        return
    try:
        TraceReader(path)
    except UsageError:
        raise UsageError(
            f"--trace {path}: the file exists and is no trace of this version; delete it, or give another name."
        ) from None


@contextmanager
def open_trace(
    request: Traced, drafters: Sequence[str], runner: "Runner", params: "SamplingParams"
) -> "Iterator[TraceWriter | None]":
    """Yield an open trace with its header written; None where none is wanted.

    Raises:
        UsageError: it cannot be written.
    """
    if request.trace is None:
        yield None
        return
    from outrider.traces.writer import TraceWriter

    with TraceWriter(request.trace, _header(request, drafters, runner, params)) as trace:
        yield trace


def _header(request: Traced, drafters: Sequence[str], runner: "Runner", params: "SamplingParams") -> "TraceHeader":
    import torch

    from outrider.provenance import provenance
    from outrider.traces.format import TraceHeader

    return TraceHeader(
        model=request.model,
        dtype=dtype_name(request.loading, runner),
        drafters=list(drafters),
        draft_model=runner.loaded.draft_model,
        draft=runner.loaded.draft,
        sampling=asdict(params),
        provenance=provenance(threads=torch.get_num_threads(), seed=params.seed),
    )
