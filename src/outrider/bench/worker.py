"""The benchmark's side of a worker: an arm in its own process, so threads and memory are its own.

A worker that dies, hangs or prints what is no message is an error that ends with its last words.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel, ValidationError

from outrider.bench.protocol import Answer, Peak, PeakRequest, Ready, Request
from outrider.errors import OutriderError

_Message = TypeVar("_Message", bound=BaseModel)
_TAIL_BYTES = 2000
_TAIL_LINES = 3
_GOODBYE_SECONDS = 10.0


class Worker:
    """A running arm. Use as a context manager: leaving it ends the process.

    Args:
        name: For messages.
        command: The program and its arguments.
        timeout: Seconds within which the worker must load, and answer each request.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        timeout: float = 600.0,
    ) -> None:
        self.name = name
        self._timeout = timeout
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        # A file, not a pipe: nobody reads it while the worker runs, and a full pipe would stop it.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the caller's own command, no shell
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            self._stderr.close()
            raise OutriderError(f"Cannot start benchmark arm {name!r} ({command[0]}): {error.strerror}.") from error
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def wait_ready(self) -> Ready:
        """Wait until the model is loaded."""
        return self._receive(Ready, "loading")

    def generate(self, request: Request) -> Answer:
        """Run one request."""
        self._send(request)
        return self._receive(Answer, "generating")

    def peak_bytes(self) -> int | None:
        """Peak memory so far, over what was there before the model was loaded."""
        self._send(PeakRequest())
        return self._receive(Peak, "telling its peak memory").peak_bytes

    def close(self) -> None:
        """End the process; by force if it does not end by itself."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            try:
                process.stdin.close()
            except OSError:  # it died with our last message unread
                process.kill()
        try:
            process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join()
        if process.stdout is not None:
            process.stdout.close()
        self._stderr.close()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  # we asked for a pipe
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _send(self, message: BaseModel) -> None:
        assert self._process.stdin is not None  # noqa: S101  # we asked for a pipe
        try:
            self._process.stdin.write(message.model_dump_json() + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._died("taking a request") from error

    def _receive(self, kind: type[_Message], doing: str) -> _Message:
        try:
            line = self._lines.get(timeout=self._timeout)
        except Empty:
            self._process.kill()
            raise self._error(f"was still {doing} after {self._timeout:g} s and was ended") from None
        if line is None:
            raise self._died(doing)
        try:
            return kind.model_validate_json(line)
        except ValidationError as error:
            shown = line.strip()[:80]
            raise self._error(
                f"printed {shown!r} while {doing}, where a {kind.__name__} message was expected"
            ) from error

    def _died(self, doing: str) -> OutriderError:
        try:
            code = self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            return self._error(f"closed its output while {doing}")
        return self._error(f"ended with exit code {code} while {doing}")

    def _error(self, what: str) -> OutriderError:
        return OutriderError(f"Benchmark arm {self.name!r} {what}. {self._last_words()}")

    def _last_words(self) -> str:
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, size - _TAIL_BYTES))
        lines = self._stderr.read().decode("utf-8", errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()][-_TAIL_LINES:]
        return f"Its last words: {' | '.join(words)}" if words else "It said nothing on stderr."
