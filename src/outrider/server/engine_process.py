"""The engine's process as the front sees it: started, spoken to, started again when it dies.

Two threads stand between the event loop and the pipe, so that neither a long prompt nor a long step holds up the other.
"""

import asyncio
import contextlib
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from threading import Thread

from outrider.errors import OutriderError
from outrider.server.engine_main import engine_main
from outrider.server.messages import Command, Loading, Told

CLOSING_S = 10.0  # for an engine in the middle of a step to end by itself


class EngineDiedError(OutriderError):
    """The engine ended before it was ready."""


class EngineProcess:
    """One life of an engine.

    Args:
        loading: what to load.
        hear: is called with each message, in the event loop's thread; None when the engine is gone.
    """

    def __init__(self, loading: Loading, hear: Callable[[Told | None], None]) -> None:
        self._loading, self._hear = loading, hear
        self._process: SpawnProcess | None = None
        self._commands: SimpleQueue[Command | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Start loading."""
        context = multiprocessing.get_context("spawn")  # a fork would copy locks and threads of the front
        ours, theirs = context.Pipe()
        self._process = context.Process(target=engine_main, args=(theirs, self._loading), daemon=True)
        self._process.start()
        theirs.close()
        Thread(target=self._receive, args=(ours,), daemon=True, name="outrider-hears").start()
        Thread(target=self._send, args=(ours,), daemon=True, name="outrider-tells").start()

    def say(self, command: Command) -> None:
        """Send a command."""
        self._commands.put(command)

    @property
    def pid(self) -> int | None:
        """Its number."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End it; one that does not is killed."""
        self._commands.put(None)
        if self._process is not None:
            self._process.join(CLOSING_S)
            self._process.kill()
            self._process.join()

    def _send(self, pipe: Connection) -> None:
        try:
            # The end is said, too: a pipe that another thread reads stays open when it is closed.
            command: Command | None = self._commands.get()
            while command is not None:
                pipe.send(command)
                command = self._commands.get()
            pipe.send(None)
        except OSError:  # it is gone; the other thread notices and tells
            pass

    def _receive(self, pipe: Connection) -> None:
        try:
            while True:
                self._pass_on(pipe.recv())
        except (EOFError, OSError):
            self._pass_on(None)

    def _pass_on(self, told: Told | None) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._hear, told)
