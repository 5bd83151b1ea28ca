"""The engine's process: loads the model, then serves the front over a pipe until the pipe closes."""

import os
import signal
import time
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from outrider.errors import OutriderError
from outrider.server.messages import Command, Failed, Loading, Ready

if TYPE_CHECKING:
    from outrider.runner import Runner


def engine_main(pipe: Connection, loading: Loading) -> None:
    """Serve over the pipe; ends when the front closes it or is gone.

    Args:
        pipe: commands come in, messages go out.
        loading: what to load.
    """
    # Ctrl-C and a service manager's SIGTERM reach every process of a group: the front drains, then closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        _serve(pipe, loading)
    except OSError:  # the front is gone: nobody is left to tell
        pass
    except OutriderError as error:
        _fail(pipe, Failed(str(error), expected=True))
    except Exception:  # noqa: BLE001 -- whatever it is, the front must hear of it
        _fail(pipe, Failed(traceback.format_exc(), expected=False))
    # The thread that reads the pipe may be waiting, and nothing here needs tidying.
    os._exit(0)


def _fail(pipe: Connection, failed: Failed) -> None:
    try:
        pipe.send(failed)
        pipe.close()
    except OSError:
        pass


def _serve(pipe: Connection, loading: Loading) -> None:
    from outrider.server.engine_loop import EngineLoop

    begun = time.monotonic()
    runner = _load(loading)
    pipe.send(_ready(runner, time.monotonic() - begun))
    commands: SimpleQueue[Command | None] = SimpleQueue()
    Thread(target=_listen, args=(pipe, commands), daemon=True).start()
    EngineLoop(runner, commands, pipe.send).run()


def _load(loading: Loading) -> "Runner":
    from outrider.runner import load

    return load(
        loading.model,
        drafter=loading.drafter,
        draft_model=loading.draft_model,
        draft=loading.draft,
        dtype=loading.dtype,
        device=loading.device,
        slots=loading.slots,
        max_len=loading.max_len,
        weights="dummy" if loading.dummy else "real",
    )


def _ready(runner: "Runner", seconds: float) -> Ready:
    target = runner.target
    return Ready(
        drafter=runner.drafter.name,
        slots=runner.slots,
        max_len=runner.max_len,
        vocab_size=target.shape.vocab_size,
        device=str(target.device),
        dtype=str(target.dtype).removeprefix("torch."),
        seconds=seconds,
    )


def _listen(pipe: Connection, commands: "SimpleQueue[Command | None]") -> None:
    """Take in what the front says, so that it never waits for a step."""
    try:
        while (command := pipe.recv()) is not None:
            commands.put(command)
        commands.put(None)
    except (EOFError, OSError):
        commands.put(None)
