"""What all Triton kernels share: whether they run on a device, sizes they take, room for partial sums."""

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

DEFAULT_OVERLAP = "0"
SMALLEST = 16  # rows and columns of the smallest product that tensor cores take


def can_run(device: torch.device) -> bool:
    """Whether kernels run there: on GPUs where Triton is installed, and anywhere in Triton's interpreter."""
    return (device.type == "cuda" or interpreted()) and find_spec("triton") is not None


def interpreted() -> bool:
    """Whether Triton interprets: the tests' way to run kernels without a GPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def power(number: int) -> int:
    """The next power of two."""
    return 1 << (number - 1).bit_length()


def tile(number: int) -> int:
    """The next power of two that products take."""
    return max(SMALLEST, power(number))


def exact(dtype: torch.dtype) -> str:
    """How products of this type are made: float32 in parts that tensor cores take, without loss; others as they are."""
    return "tf32x3" if dtype == torch.float32 else "tf32"


@cache
def early(device: torch.device) -> dict[str, bool]:
    """How kernels are launched there: early, while the one before still runs, on Hopper and later.

    What a kernel does before it waits for the one before, such as fetching weights, then takes no time of its own.
    ``OUTRIDER_OVERLAP=0`` launches them one after the other.
    """
    wanted = os.environ.get("OUTRIDER_OVERLAP", DEFAULT_OVERLAP) == "1"
    if wanted and device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0):
        return {"EARLY": True, "launch_pdl": True}
    return {"EARLY": False}


@cache
def processors(device: torch.device) -> int:
    """How many programs run at once, one on each multiprocessor."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


class Room:
    """Memory of one device that kernels use between their own start and end; it grows, and is never given back.

    Kernels of one stream come one after the other, so all of them share it. A graph that was captured keeps what it
    was captured with: growth makes a new piece and leaves the old one to whoever holds it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums = torch.empty(0, device=device)
        self._counters = torch.zeros(0, dtype=torch.int32, device=device)
        self._kept: list[Tensor] = []

    def sums(self, count: int) -> Tensor:
        """Room for so many float32 numbers; what lies in it means nothing."""
        if len(self._sums) < count:
            self._kept.append(self._sums)
            self._sums = torch.empty(power(count), device=self._device)
        return self._sums

    def counters(self, count: int) -> Tensor:
        """So many zeros, which a kernel leaves as zeros."""
        if len(self._counters) < count:
            self._kept.append(self._counters)
            self._counters = torch.zeros(max(4096, power(count)), dtype=torch.int32, device=self._device)
        return self._counters


@cache
def room(device: torch.device) -> Room:
    """The room of a device."""
    return Room(device)
