"""The texts of one request at work: their steps as they come, up to the deadline; none is ever left over."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from outrider.engine.params import SamplingParams
from outrider.server.engine_client import EngineClient
from outrider.server.faults import ApiError, too_late
from outrider.server.jobs import Job
from outrider.server.measures import Measures
from outrider.server.messages import Progress
from outrider.server.requests import Speculation
from outrider.server.told import Tally

Texts = Sequence[tuple[tuple[int, ...], SamplingParams]]


class Work:
    """The texts of one request, queued.

    Args:
        client: runs them.
        measures: is told how long things took.
        texts: prompts with their settings, one for each choice.
        prompts: tokens of each prompt; one that several choices share counts once.
        speculation: how to draft, and what to tell.
        deadline_s: for all of it.

    Raises:
        ApiError: they cannot be queued.
    """

    def __init__(
        self,
        client: EngineClient,
        measures: Measures,
        texts: Texts,
        *,
        prompts: Sequence[int],
        speculation: Speculation,
        deadline_s: float,
    ) -> None:
        self._client, self._measures, self._deadline_s = client, measures, deadline_s
        self._begun = time.monotonic()
        self.speculation, self.tally = speculation, Tally(prompts)
        self.choices = len(texts)
        self.finish_reasons: list[str] = []
        self.first_s: float | None = None
        self._jobs, self._news = client.submit(texts, draft_depth=speculation.draft_length, rounds=speculation.rounds)

    async def steps(self) -> AsyncIterator[tuple[Job, Progress]]:
        """Yield what comes, until every text has ended. Who stops listening cancels the rest.

        Raises:
            ApiError: it was refused, the engine was lost, or the deadline has passed.
        """
        last: dict[int, float] = {}
        try:
            while len(self.finish_reasons) < self.choices:
                job, progress = await self._next()
                self._time(job, progress, last)
                self.tally.add(progress)
                if progress.end is not None:
                    self.finish_reasons.append(progress.end.finish_reason)
                yield job, progress
            self._measures.whole(self._passed)
        finally:
            self.close()

    def log_fields(self) -> dict[str, object]:
        """Return what the log says of it."""
        tally = self.tally.usage()
        return {
            "prompt_tokens": tally.prompt_tokens,
            "completion_tokens": tally.completion_tokens,
            "cached_tokens": tally.prompt_tokens_details.cached_tokens,
            "accepted": tally.completion_tokens_details.accepted_prediction_tokens,
            "rejected": tally.completion_tokens_details.rejected_prediction_tokens,
            "first_token_s": None if self.first_s is None else round(self.first_s, 4),
            "ended": self.finish_reasons,
            "choices": self.choices,
        }

    def close(self) -> None:
        """Cancel what has not ended."""
        self._client.cancel(self._jobs)

    @property
    def _passed(self) -> float:
        return time.monotonic() - self._begun

    async def _next(self) -> tuple[Job, Progress]:
        try:
            job, news = await asyncio.wait_for(self._news.get(), max(0.0, self._deadline_s - self._passed))
        except TimeoutError:
            raise too_late(self._deadline_s) from None
        if isinstance(news, ApiError):
            raise news
        return job, news

    def _time(self, job: Job, progress: Progress, last: dict[int, float]) -> None:
        passed = self._passed
        if self.first_s is None:
            self.first_s = passed
            self._measures.first_token(passed)
        if job.index in last:
            self._measures.tokens_later(passed - last[job.index], len(progress.pieces))
        last[job.index] = passed
