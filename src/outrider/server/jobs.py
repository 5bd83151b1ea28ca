"""One text that the front waits for: told of by the engine; and which may run."""

import asyncio

from outrider.server.faults import ApiError, overloaded
from outrider.server.messages import Progress

USUAL_S = 5.0  # of a job, before any has ended


News = asyncio.Queue["tuple[Job, Progress | ApiError]"]


class Job:
    """A text on its way; the texts of one request tell their news in one queue.

    Args:
        number: the front's.
        index: among the choices of its request.
        prompt: token ids.
        news: where to tell.
    """

    def __init__(self, number: int, index: int, prompt: tuple[int, ...], news: News) -> None:
        self.number, self.index, self.prompt = number, index, prompt
        self._news = news

    def tell(self, news: Progress | ApiError) -> None:
        """Pass on what came from the engine, in the event loop's thread."""
        self._news.put_nowait((self, news))


class Admission:
    """How many texts may run and wait, and how long whoever is refused should stay away.

    Args:
        slots: texts that run at once.
        waiting: texts that may wait for a slot.
    """

    def __init__(self, *, slots: int, waiting: int) -> None:
        self._slots, self._most = slots, slots + waiting
        self._waiting = waiting
        self._mean_s = USUAL_S

    def check(self, live: int, wanted: int) -> None:
        """Refuse what would not fit.

        Args:
            live: texts that run or wait now.
            wanted: texts of the new request.

        Raises:
            ApiError: 429, with the time in which a place should be free.
        """
        if live + wanted <= self._most:
            return
        beyond = live + wanted - self._most
        retry_s = self._mean_s * -(-beyond // self._slots)
        raise overloaded(
            f"The queue is full: {max(0, live - self._slots)} of at most {self._waiting} texts wait for one of "
            f"{self._slots} slots, and {wanted} more {'was' if wanted == 1 else 'were'} asked for. "
            f"Try again in {max(1, round(retry_s))} s.",
            retry_s=retry_s,
        )

    def learn(self, seconds: float) -> None:
        """Take in how long a text was in a slot."""
        self._mean_s += (seconds - self._mean_s) * 0.1
