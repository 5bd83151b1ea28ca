"""Plays one step many times: recorded once as a CUDA graph for each number of columns, or run as it is on a CPU.

What a step does is not known here, save that it changes tensors in place and asks the device nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch

_WARM_UP = 2  # runs before recording: libraries choose their kernels and take their memory


class Steps:
    """Runs ``step(span)``.

    Args:
        step: reads the cache as far as ``span`` columns.
        spans: values that will be asked for; smaller numbers of columns use the next one.
        device: where it runs.

    A graph is recorded when nothing is being written, since the runs before it do count.
    """

    def __init__(self, step: Callable[[int], None], spans: Iterable[int], device: torch.device) -> None:
        self._step, self._spans, self._device = step, sorted(spans), device
        self._graphs: dict[int, Any] = {}

    def record(self) -> None:
        """Record all graphs; on a CPU there is nothing to record."""
        if self._device.type != "cuda":
            return
        pool = torch.cuda.graph_pool_handle()
        for span in reversed(self._spans):  # the largest first: the others find their memory in its pool
            self._warm_up(span)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self._step(span)
            self._graphs[span] = graph

    def _warm_up(self, span: int) -> None:
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                self._step(span)
        torch.cuda.current_stream(self._device).wait_stream(stream)

    def run(self, columns: int, *, times: int) -> None:
        """Run the step with the smallest span that holds ``columns``."""
        span = next(span for span in self._spans if span >= columns)
        graph = self._graphs.get(span)
        for _ in range(times):
            if graph is None:
                self._step(span)
            else:
                graph.replay()
