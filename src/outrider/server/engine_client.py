"""Jobs in, progress out: the front's one door to the engine, which it starts again when it dies."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import count

from outrider.engine.params import SamplingParams
from outrider.errors import OutriderError
from outrider.server.engine_process import EngineDiedError, EngineProcess
from outrider.server.faults import invalid, unavailable
from outrider.server.jobs import Admission, Job, News
from outrider.server.measures import Measures
from outrider.server.messages import Cancel, Failed, Loading, Progress, Ready, Refused, Start, Stepped, Told

LOG = logging.getLogger("outrider.server")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0  # before a dead engine is started again; doubles while none gets ready


class EngineClient:
    """The engine, whichever process it lives in.

    Args:
        loading: what to load.
        waiting: texts that may wait for a slot.
        measures: is told of all that happens.

    Attributes:
        ready: what the engine said when it was loaded; None while none is.
    """

    def __init__(self, loading: Loading, *, waiting: int, measures: Measures) -> None:
        self._loading, self._measures = loading, measures
        self._admission = Admission(slots=loading.slots, waiting=waiting)
        self._jobs: dict[int, Job] = {}
        self._numbers = count(1)
        self._pause_s = FIRST_PAUSE_S
        self._closing = False
        self._changed = asyncio.Event()
        self._failed: Failed | None = None
        self._restart: asyncio.Task[None] | None = None
        self.ready: Ready | None = None
        self._load_s = 10.0
        self._engine = EngineProcess(loading, self._hear)

    async def start(self) -> Ready:
        """Load the model.

        Raises:
            OutriderError: it cannot be loaded; says why.
        """
        self._engine.start()
        await self._changed.wait()
        if self.ready is None:
            self._closing = True
            raise self._reason()
        return self.ready

    def _reason(self) -> OutriderError:
        if self._failed is None:
            return EngineDiedError("The engine's process ended while it loaded the model; is there enough memory?")
        return EngineDiedError(self._failed.reason)

    async def close(self) -> None:
        """End the engine."""
        self._closing = True
        if self._restart is not None:
            self._restart.cancel()
        await asyncio.to_thread(self._engine.close)

    @property
    def pid(self) -> int | None:
        """Of the engine's process."""
        return self._engine.pid

    @property
    def live(self) -> int:
        """Texts that run or wait."""
        return len(self._jobs)

    def submit(
        self,
        texts: Sequence[tuple[tuple[int, ...], SamplingParams]],
        *,
        draft_depth: int | None = None,
        rounds: bool = False,
    ) -> tuple[list[Job], News]:
        """Queue prompts, each with its settings; return their jobs and where they tell.

        Raises:
            ApiError: 429 where too many wait, 503 while no engine is loaded.
        """
        self.check_ready()
        self._admission.check(self.live, len(texts))
        news: News = asyncio.Queue()
        jobs = []
        for index, (prompt, params) in enumerate(texts):
            job = Job(next(self._numbers), index, prompt, news)
            self._jobs[job.number] = job
            self._engine.say(Start(job.number, prompt, params, draft_depth, rounds))
            jobs.append(job)
        return jobs, news

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Give up what has not ended."""
        for job in jobs:
            if self._jobs.pop(job.number, None) is not None:
                self._engine.say(Cancel(job.number))
                self._measures.cancelled()

    def check_ready(self) -> Ready:
        """Return what is loaded.

        Raises:
            ApiError: 503 while nothing is.
        """
        if self.ready is not None:
            return self.ready
        seconds = self._load_s + self._pause_s
        raise unavailable(
            f"The engine is being loaded again and should be back within {seconds:.0f} s; try again then.",
            retry_s=seconds,
        )

    def _hear(self, told: Told | None) -> None:
        match told:
            case Stepped():
                self._measures.stepped(told)
                for progress in told.progress:
                    self._pass_on(progress)
            case Refused():
                job = self._jobs.pop(told.job, None)
                if job is not None:
                    job.tell(invalid(told.reason))
            case Ready():
                self.ready, self._pause_s, self._load_s = told, FIRST_PAUSE_S, told.seconds
                self._measures.ready(told)
                self._changed.set()
            case Failed():
                self._failed = told
                LOG.error("engine failed", extra={"fields": {"reason": told.reason}})
            case None:
                self._lost()

    def _pass_on(self, progress: Progress) -> None:
        job = self._jobs.get(progress.job)
        if job is None:  # cancelled while this was on its way
            return
        if progress.end is not None:
            del self._jobs[progress.job]
            self._admission.learn(progress.end.prefill_s + progress.end.decode_s)
            self._measures.ended(progress.end, len(job.prompt))
        job.tell(progress)

    def _lost(self) -> None:
        """Tell all that wait, and start another."""
        first, self.ready = not self._changed.is_set(), None
        if self._closing:
            return
        jobs, self._jobs = self._jobs, {}
        for job in jobs.values():
            job.tell(
                unavailable(
                    "The engine's process died in the middle of this text and is being started again, "
                    f"which takes about {self._load_s:.0f} s. The text is lost; send the request again.",
                    retry_s=self._load_s + self._pause_s,
                )
            )
        self._changed.set()
        if not first:
            LOG.error("engine lost", extra={"fields": {"texts_lost": len(jobs), "again_in_s": self._pause_s}})
            self._measures.lost()
            self._restart = asyncio.get_running_loop().create_task(self._start_again())

    async def _start_again(self) -> None:
        await asyncio.to_thread(self._engine.close)
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._failed = None
        self._engine = EngineProcess(self._loading, self._hear)
        self._engine.start()
