"""Reads a trace, line by line: memory is that of one row, however long the file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from outrider.errors import UsageError
from outrider.traces.format import FORMAT, VERSION, TraceHeader, TraceRow

LONGEST_HEADER = 1 << 20  # bytes; a file without lines is no trace, and is not read whole to find out


class TraceReader:
    """A trace on the disk.

    Attributes:
        header: its first line.
        truncated: whether the last line was found cut short; known when all rows were read.

    Raises:
        UsageError: the file cannot be read, or is no trace of this version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.truncated = False
        try:
            with path.open("rb") as file:
                line = file.readline(LONGEST_HEADER)
        except OSError as error:
            raise self._unreadable(error) from None
        self.header = self._header(line)

    def _header(self, line: bytes) -> TraceHeader:
        values = self._parsed(line)
        if values.get("version") != VERSION:
            raise UsageError(
                f"{self._path} is a trace of version {values.get('version')!r}; this Outrider reads version "
                f"{VERSION}. Write it again with generate or compare and --trace."
            )
        try:
            return TraceHeader.model_validate(values)
        except ValidationError as error:
            raise UsageError(f"{self._path}, line 1: not the header of a trace: {_first(error)}.") from None

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, dict) and values.get("format") == FORMAT:
            return values
        raise UsageError(
            f'{self._path} is no trace: expected a first line with "format": "{FORMAT}". '
            "Write one with generate or compare and --trace."
        )

    def rows(self) -> Iterator[TraceRow]:
        """Yield the rounds in the order in which they ran.

        Raises:
            UsageError: a line is no round; one that ends with the file is cut short and is left out.
        """
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    row = self._row(number, line) if number > 1 else None
                    if row is not None:
                        yield row
        except OSError as error:
            raise self._unreadable(error) from None

    def _row(self, number: int, line: bytes) -> TraceRow | None:
        try:
            return TraceRow.model_validate_json(line)
        except ValidationError as error:
            if not line.endswith(b"\n") and error.errors()[0]["type"] == "json_invalid":
                self.truncated = True
                return None
            raise UsageError(f"{self._path}, line {number}: not a round of a trace: {_first(error)}.") from None

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(f"Cannot read the trace {self._path}: {error.strerror or error}.")


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    where = ".".join(map(str, found["loc"]))
    message = " ".join(found["msg"].split()).rstrip(".")
    return f"{where}: {message}" if where else message
