"""One process or several: who does what part of a step, and how they agree. Several are started by torchrun.

Each process takes its share of a step's rows; gradients and counts are summed. The first one alone measures, writes
and speaks.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Group:
    """The processes of a run.

    Attributes:
        rank: this one's number.
        world: how many there are.
        host: the group for what the host must know; None for a single process.
    """

    rank: int = 0
    world: int = 1
    host: Any = None

    @property
    def first(self) -> bool:
        """Whether this one measures, writes and speaks."""
        return self.rank == 0

    def wrap(self, network: nn.Module) -> nn.Module:
        """Return the network with gradients that are the mean over processes."""
        if self.world == 1:
            return network
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(network, gradient_as_bucket_view=True)

    def gathering(self, model: nn.Module, *, last: bool) -> Any:
        """Return a context in which gradients are exchanged after the last of several backward passes alone."""
        no_sync = getattr(model, "no_sync", None)
        return nullcontext() if last or no_sync is None else no_sync()

    def add_up(self, values: Tensor) -> Tensor:
        """Return the sum over processes."""
        if self.world > 1:
            dist.all_reduce(values)
        return values

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums over processes of numbers on the host."""
        if self.world == 1:
            return list(numbers)
        values = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(values, group=self.host)
        sums: list[float] = values.tolist()
        return sums

    def wait(self) -> None:
        """Let all come to this place."""
        if self.world > 1:
            dist.barrier(group=self.host)


def own_device(name: str) -> str:
    """Return which device this process takes, where ``name`` leaves it open."""
    if name not in {"auto", "cuda"} or not torch.cuda.is_available():
        return name
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"


def is_first() -> bool:
    """Say whether this is the process that speaks."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def joined(device: torch.device) -> Iterator[Group]:
    """Join the processes that torchrun started, if it did."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # what torchrun sets
        yield Group()
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Group(dist.get_rank(), dist.get_world_size(), dist.new_group(backend="gloo"))
    finally:
        dist.destroy_process_group()
