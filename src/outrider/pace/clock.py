"""Timing rounds, the rate of copies, and which kernels take the time."""

from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import NamedTuple

import torch

from outrider.engine.graphs import WARM_UPS, GraphedRounds
from outrider.pace.result import KernelTime

COPIED = {"cuda": 2**32, "cpu": 2**27}  # bytes of a copy that fills the chip
COPIES = 10
UNTIMED = WARM_UPS + 3  # rounds before any is timed: kernels are built, the graph is there


class Timed(NamedTuple):
    """Seconds of each round, and tokens that its rows got in the mean."""

    seconds: list[float]
    tokens: float


def time_rounds(graphed: GraphedRounds, count: int) -> Timed:
    """Time so many rounds from start to start, each read while the next one runs."""
    device = graphed.rounds.anchors_B.device
    for _ in range(UNTIMED):
        graphed.launch().read()
    marks = [_Mark(device)]
    tokens, pending = 0, graphed.launch()
    for _ in range(count):
        marks.append(_Mark(device))
        ticket = graphed.launch()
        tokens += sum(map(len, pending.read()))
        pending = ticket
    pending.read()
    seconds = [later.since(earlier) for earlier, later in pairwise(marks)]
    return Timed(seconds, tokens / count / len(graphed.rounds.anchors_B))


class _Mark:
    """A moment on the device's own clock."""

    def __init__(self, device: torch.device) -> None:
        self._event = torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._seconds = perf_counter()
        if self._event is not None:
            self._event.record()

    def since(self, earlier: "_Mark") -> float:
        """Seconds between two marks; the device has passed both."""
        if self._event is None or earlier._event is None:  # noqa: SLF001 -- one of its own kind
            return self._seconds - earlier._seconds  # noqa: SLF001
        self._event.synchronize()
        return float(earlier._event.elapsed_time(self._event)) / 1e3  # noqa: SLF001


def copy_rate(device: torch.device) -> float:
    """Bytes a second of device copies, read and written bytes counted; the median."""
    source = torch.randn(COPIED.get(device.type, 2**27) // 4, device=device)
    target = torch.empty_like(source)
    taken = []
    for _ in range(COPIES + 2):
        start = _Mark(device)
        target.copy_(source)
        taken.append((start, _Mark(device)))
    seconds = median(end.since(start) for start, end in taken[2:])
    return 2 * source.nbytes / seconds


def profile_rounds(graphed: GraphedRounds, count: int, most: int = 40) -> list[KernelTime]:
    """Which kernels take the time, longest first; each number is a round's."""
    cuda = graphed.rounds.anchors_B.device.type == "cuda"
    kind = torch.profiler.ProfilerActivity.CUDA if cuda else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as profiler:
        for _ in range(count):
            graphed.launch().read()
    found = [
        KernelTime(
            name=event.key[:160],
            calls=event.count / count,
            microseconds=(event.self_device_time_total if cuda else event.self_cpu_time_total) / count,
        )
        for event in profiler.key_averages()
    ]
    return sorted(found, key=lambda one: -one.microseconds)[:most]
