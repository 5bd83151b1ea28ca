"""The time of a round: bytes over bandwidth, products that do not hide behind them, and what an engine adds.

Checked against what one H200 measured (docs/engines.md): within 15 % for matrices of 1 to 256 tokens and for vLLM.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from outrider.adapters.methods import Method
from outrider.adapters.start.deployment import WHOLE_BLOCK
from outrider.planning.hardware import Device
from outrider.planning.sizes import DrafterSizes, Sizes

OPEN = 0.6  # of the products' time that reading does not hide: from 16 to 256 tokens on an H200
SPOKEN_S = 24e-6  # a layer, for two sums over devices: assumed
MS = 1e-3
_IDEAL: Mapping[str, Any] = {"round": 0.0, "step": 0.0, "block": 0.0, "states": False}
ERROR = 0.15  # relative: within which the model has met what was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked for.

    Attributes:
        context: tokens of a sequence.
        batch: sequences at once.
        devices: that the weights are cut over.
    """

    context: int = 4096
    batch: int = 1
    devices: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTime:
    """A round's parts, in seconds."""

    target: float
    drafter: float
    engine: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.target + self.drafter + self.engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """What is drafted a round.

    Attributes:
        method: None for plain decoding.
        nodes: that are verified beside the anchor.
        drafter: for methods that fill a block.
    """

    method: Method | None = None
    nodes: int = 0
    drafter: DrafterSizes | None = None


@cache
def _overheads() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files("outrider.planning").joinpath("data/engines.toml").read_text("utf-8"))


def overhead_source(engine: str) -> str:
    """Where an engine's overheads come from."""
    return str(_overheads()[engine]["source"])


def matrices(size: Sizes, device: Device, tokens: int, devices: int = 1) -> float:
    """Seconds that the matrices of one pass take for so many tokens at once."""
    read = size.weights / (device.copy * device.streamed)
    products = 2 * size.parameters * tokens / device.flops
    return (read + OPEN * products) / devices


def round_time(size: Sizes, device: Device, load: Load, drafting: Drafting, *, engine: str) -> RoundTime:
    """Return the time of a round.

    Args:
        size: the target.
        device: one of those that it runs on.
        load: what is asked for.
        drafting: what is drafted.
        engine: whose overheads count; one without a row for none.
    """
    added = _overheads().get(engine, _IDEAL)
    nodes = drafting.nodes
    rate = device.copy * device.streamed * load.devices
    written = nodes if added["states"] and drafting.method else 2  # a state for each node, or read and written once
    cached = size.kv * load.context + size.state * written
    target = matrices(size, device, load.batch * (1 + nodes), load.devices) + cached * load.batch / rate
    spoken = SPOKEN_S * size.layers if load.devices > 1 else 0.0
    read, launched = _draft(size, load, drafting, added)
    return RoundTime(target=target + spoken, drafter=read / rate, engine=(added["round"] + launched) * MS)


def _draft(size: Sizes, load: Load, drafting: Drafting, added: Mapping[str, Any]) -> tuple[float, float]:
    """Bytes that drafting reads, and milliseconds that the engine adds to it."""
    drafter = drafting.drafter
    if drafting.method == "mtp":
        return drafting.nodes * (size.mtp + size.head), drafting.nodes * float(added["step"])
    if drafter is not None and drafting.method in (*WHOLE_BLOCK, "ddtree"):
        return drafter.weights + size.head + drafter.kv * load.context * load.batch, float(added["block"])
    return 0.0, 0.0
