"""Runs a program until the pipe on its standard input closes: then ends the program and all that it started.

The pipe closes when whoever holds its other end ends in whatever way, by force too, so nothing is left running.
Arguments: seconds of grace, then the program. Standard library alone: it starts in a blink.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

CANNOT_START = 127


def main() -> int:
    """Run; return the program's exit code, as a shell counts signals."""
    grace, words = float(sys.argv[1]), sys.argv[2:]
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Our end is the pipe's alone, else the program would outlive us; handlers, unlike SIG_IGN, are not inherited.
        signal.signal(sign, lambda *_: None)
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 -- no shell
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return CANNOT_START
    threading.Thread(target=_wait_for_the_end, args=(process, grace), daemon=True).start()
    code = process.wait()
    _signal_all(process.pid, signal.SIGKILL)  # workers that the program left behind
    return code if code >= 0 else 128 - code


def _wait_for_the_end(process: "subprocess.Popen[bytes]", grace: float) -> None:
    while os.read(0, 1 << 12):
        pass
    _signal_all(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace)
        return
    _signal_all(process.pid, signal.SIGKILL)


def _signal_all(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)


if __name__ == "__main__":
    os._exit(main())  # at once: a thread still reads
