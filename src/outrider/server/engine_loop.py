"""The engine's side: takes jobs, steps while there is work, tells what each step brought.

Jobs join and leave between steps. Runs in a process of its own (``engine_main``).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from outrider.engine.tracing import RoundRecord
from outrider.errors import OutriderError
from outrider.runner import Runner
from outrider.server.messages import Cancel, Command, End, Progress, Refused, Start, Stepped, Told
from outrider.transcript import Transcript


@dataclass(slots=True)
class _Running:
    """A job at work: its text, how much of it was told, when it was queued, and its last round if it is to be told."""

    transcript: Transcript
    rounds: bool
    queued_at: float
    told: int = 0
    record: RoundRecord | None = None


class EngineLoop:
    """Runs jobs over a runner.

    Args:
        runner: a loaded model.
        commands: what the front says; None ends the loop.
        tell: sends to the front.
    """

    def __init__(self, runner: Runner, commands: "SimpleQueue[Command | None]", tell: Callable[[Told], None]) -> None:
        self._runner, self._commands, self._tell = runner, commands, tell
        self._jobs: dict[int, _Running] = {}
        self._by_sequence: dict[int, _Running] = {}

    def run(self) -> None:
        """Serve until told to end."""
        while self._take_commands():
            if self._runner.engine.busy:
                self._step()

    def _take_commands(self) -> bool:
        """Take what has been said so far, waiting for a word where there is nothing to do; False at the end."""
        while not self._commands.empty() or not self._runner.engine.busy:
            command = self._commands.get()
            if command is None:
                return False
            if isinstance(command, Start):
                self._start(command)
            else:
                self._cancel(command)
        return True

    def _start(self, command: Start) -> None:
        try:
            transcript = self._runner.start(command.prompt, command.params, draft_depth=command.draft_depth)
        except OutriderError as error:
            self._tell(Refused(command.job, str(error)))
            return
        running = _Running(transcript, command.rounds, time.perf_counter())
        self._jobs[command.job] = self._by_sequence[transcript.sequence.id] = running
        self._listen()

    def _cancel(self, command: Cancel) -> None:
        running = self._jobs.pop(command.job, None)
        if running is not None:
            self._runner.drop(running.transcript)
            self._forget(running)
            self._tell_step(())  # there may be no other step to say that it is gone

    def _forget(self, running: _Running) -> None:
        del self._by_sequence[running.transcript.sequence.id]
        self._listen()

    def _listen(self) -> None:
        """Have rounds recorded only while somebody wants to see them: it reads every node's law."""
        wanted = any(running.rounds for running in self._jobs.values())
        self._runner.engine.recorder = self._record if wanted else None

    def _record(self, record: RoundRecord) -> None:
        running = self._by_sequence.get(record.sequence_id)
        if running is not None and running.rounds:
            running.record = record

    def _step(self) -> None:
        self._runner.step()
        progress = tuple(
            self._progress(job, running) for job, running in list(self._jobs.items()) if _has_news(running)
        )
        self._tell_step(progress)

    def _tell_step(self, progress: tuple[Progress, ...]) -> None:
        load = self._runner.engine.load
        self._tell(Stepped(progress=progress, running=load.running, waiting=load.waiting, filled=load.filled))

    def _progress(self, job: int, running: _Running) -> Progress:
        transcript = running.transcript
        pieces = tuple(transcript.pieces[running.told :])
        running.told = len(transcript.pieces)
        end = None
        if transcript.finished:
            end = _end(running)
            del self._jobs[job]
            self._forget(running)
        record, running.record = running.record, None
        return Progress(job=job, pieces=pieces, counts=transcript.sequence.rounds[-1], record=record, end=end)


def _has_news(running: _Running) -> bool:
    return len(running.transcript.pieces) > running.told


def _end(running: _Running) -> End:
    completion, sequence = running.transcript.completion(), running.transcript.sequence
    return End(
        finish_reason=completion.finish_reason,
        rounds=completion.rounds,
        cached=sequence.reused,
        queue_s=sequence.begun_at - running.queued_at,
        prefill_s=completion.prefill_seconds,
        decode_s=completion.decode_seconds,
    )
