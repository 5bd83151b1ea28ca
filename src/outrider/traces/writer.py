"""Writes a trace as the rounds come. A line is on its way to the disk before the next round begins."""

from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from outrider.engine.tracing import Recorder, RoundRecord
from outrider.errors import UsageError
from outrider.results import Record
from outrider.traces.format import TraceHeader, TraceRow


def check_writable(path: Path) -> None:
    """Refuse what cannot be written, before anything is loaded for it; leaves the disk as it was.

    Raises:
        UsageError: says why.
    """
    try:
        absent = not path.exists()
        path.open("a", encoding="utf-8").close()
        if absent:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


class TraceWriter:
    """An open trace. Use as a context manager: leaving it closes the file, whatever happened.

    Args:
        path: replaced where it exists.
        header: written at once.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, path: Path, header: TraceHeader) -> None:
        self._path = path
        try:
            self._file = _open(path)
        except OSError as error:
            raise _unwritable(path, error) from None
        self._write(header)

    def recorder(self, drafter: str, prompt: int) -> Recorder:
        """Return what writes the rounds of one text."""

        def record(found: RoundRecord) -> None:
            self._write(TraceRow.of(found, drafter=drafter, prompt=prompt))

        return record

    def _write(self, line: Record) -> None:
        try:
            self._file.write(line.model_dump_json() + "\n")
        except OSError as error:
            self._close()
            raise _unwritable(self._path, error) from None

    def _close(self) -> OSError | None:
        """Close the file; return why what was still to be written could not be."""
        try:
            self._file.close()
        except OSError as error:
            return error
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unwritten = self._close()
        if unwritten is not None and error is None:
            raise _unwritable(self._path, unwritten)


def _open(path: Path) -> TextIO:
    """Open for writing; each line goes out when it is complete."""
    return path.open("w", encoding="utf-8", newline="\n", buffering=1)


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"Cannot write the trace {path}: {error.strerror or error}. Give --trace another file.")
