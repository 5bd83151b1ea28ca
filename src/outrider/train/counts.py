"""What is counted between two lines of the log, kept so that a run that goes on writes the lines it would have written.

Sums stay on the device until a line is due. Shape letters: N slots of a block.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from outrider.train.batches import Facts
from outrider.train.losses import Sums

# Places of what the host counts; the anchors' phases follow.
STEPS, RESPONSES, SECONDS, IN_TARGET, LONG, STARVED = range(6)
HOST = 6


class Counts:
    """Sums over the steps since the last line.

    Args:
        guesses: slots that predict.
        block_size: slots of a block.
        device: where sums are kept.
    """

    def __init__(self, guesses: int, block_size: int, device: torch.device) -> None:
        self._guesses, self._block_size, self._device = guesses, block_size, device
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.sums = Sums.nothing(self._guesses, self._device)
        self._lengths = torch.zeros((), dtype=torch.float64, device=self._device)
        self._host = np.zeros(HOST + self._block_size)

    def add_batch(self, facts: Facts) -> None:
        """Count what a batch of this process holds."""
        self._host[LONG:] += (facts.long, facts.starved, *facts.phases_N)

    def add_step(self, sums: Sums, length: Tensor, responses: int) -> None:
        """Count a step: what its guesses cost, how long its gradient was, how many response tokens it read."""
        self.sums, self._lengths = self.sums + sums, self._lengths + length.double()
        self._host[STEPS] += 1
        self._host[RESPONSES] += responses

    def add_time(self, seconds: float, in_target: float) -> None:
        """Count what steps took, in all and in the target's passes."""
        self._host[SECONDS] += seconds
        self._host[IN_TARGET] += in_target

    @property
    def steps(self) -> int:
        """Steps since the last line."""
        return int(self._host[STEPS])

    @property
    def finite(self) -> bool:
        """Whether all sums are numbers; waits for the device."""
        return bool(torch.isfinite(self._lengths) & torch.isfinite(self.sums.values).all())

    def line(self) -> dict[str, Any]:
        """Return the means, as the log has them."""
        steps, responses, seconds, in_target, long, starved = self._host[:HOST].tolist()
        phases_N = self._host[HOST:]
        return {
            "loss": self.sums.loss,
            "slot_accuracy": self.sums.accuracy,
            "grad_norm": float(self._lengths) / steps,
            "seconds": seconds / steps,
            "target_share": in_target / seconds,
            "tokens_per_second": responses / seconds,
            "anchor_phases": (phases_N / max(phases_N.sum(), 1)).tolist(),
            "starved": starved / max(long, 1),
        }

    def state(self) -> dict[str, list[float]]:
        """Return what a resumed run needs."""
        return {
            "sums": self.sums.values.tolist(),
            "lengths": [float(self._lengths)],
            "host": self._host.tolist(),
        }

    def restore(self, state: dict[str, list[float]]) -> None:
        """Take it back."""
        self.sums = Sums(torch.tensor(state["sums"], dtype=torch.float64, device=self._device))
        self._lengths = torch.tensor(state["lengths"][0], dtype=torch.float64, device=self._device)
        self._host = np.array(state["host"])


class Stopwatch:
    """Seconds that one part of the work takes, measured where it runs."""

    def __init__(self, device: torch.device) -> None:
        self._gpu = device.type == "cuda"
        self._events: list[tuple[Any, Any]] = []
        self._seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure what is done inside."""
        if not self._gpu:
            begun = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - begun
            return
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        yield
        end.record()
        self._events.append((begin, end))

    def take(self) -> float:
        """Return the seconds since the last time; the device must have come to its end."""
        seconds: float = self._seconds + sum(begin.elapsed_time(end) for begin, end in self._events) / 1000
        self._seconds, self._events = 0.0, []
        return seconds
