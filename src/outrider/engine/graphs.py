"""Rounds in CUDA graphs: captured once, replayed each round, read one round late.

Launching the thousand kernels of a round one by one takes longer than the kernels do. A graph launches all of them at
once, and the host starts the next round before it reads what the last one decided: the device never waits for it.
Where there is no GPU the rounds run as they are.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from outrider.engine.rounds import DeviceRounds

WARM_UPS = 3  # rounds before the capture: kernels are built, work space has its size


@dataclass(frozen=True, slots=True)
class Ticket:
    """A round that was started; ``read`` waits for it."""

    tokens_BP: Tensor
    counts_B: Tensor
    done: torch.cuda.Event | None

    def read(self) -> list[list[int]]:
        """Return the tokens that each row got, none for one that does not run."""
        if self.done is not None:
            self.done.synchronize()
        return [tokens[:count] for tokens, count in zip(self.tokens_BP.tolist(), self.counts_B.tolist(), strict=True)]


class GraphedRounds:
    """Starts rounds; the first ones run kernel by kernel, then they are captured.

    Args:
        rounds: of a fixed batch. Between two launches its rows may begin and end.
    """

    def __init__(self, rounds: DeviceRounds) -> None:
        self.rounds = rounds
        self._device = rounds.anchors_B.device
        self._graph: torch.cuda.CUDAGraph | None = None
        self._launched = 0
        self._held = [self._pinned() for _ in range(2)]  # the round that runs, and the one that is read

    def _pinned(self) -> tuple[Tensor, Tensor]:
        pin = self._device.type == "cuda"
        made = (self.rounds.tokens_BP, self.rounds.counts_B)
        tokens_BP, counts_B = (torch.empty(like.shape, dtype=like.dtype, pin_memory=pin) for like in made)
        return tokens_BP, counts_B

    def launch(self) -> Ticket:
        """Start a round. Its ticket must be read before the launch after the next one, which uses its place."""
        if self._device.type != "cuda":
            self.rounds.step()
        elif self._launched < WARM_UPS:
            self._step_aside()
        else:
            if self._graph is None:
                self._graph = self._capture()
            self._graph.replay()
        tokens_BP, counts_B = self._held[self._launched % 2]
        self._launched += 1
        tokens_BP.copy_(self.rounds.tokens_BP, non_blocking=True)
        counts_B.copy_(self.rounds.counts_B, non_blocking=True)
        done = torch.cuda.Event() if self._device.type == "cuda" else None  # type: ignore[no-untyped-call]
        if done is not None:
            done.record()
        return Ticket(tokens_BP, counts_B, done)

    def _step_aside(self) -> None:
        """Run a round on a stream of its own, as captures want their warm-up."""
        aside = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(aside):
            self.rounds.step()
        torch.cuda.current_stream(self._device).wait_stream(aside)

    def _capture(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.rounds.step()
        return graph
