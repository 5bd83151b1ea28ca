"""Rounds of each method at each context and batch, measured one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from outrider.pace.build import Models, rounds_of
from outrider.pace.clock import UNTIMED, copy_rate, profile_rounds, time_rounds
from outrider.pace.floor import moved
from outrider.pace.methods import Method
from outrider.pace.result import PaceResult, RoundTime
from outrider.pace.shapes import Shapes
from outrider.provenance import provenance

PROFILED = 5  # rounds of a profile
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float8": torch.float8_e4m3fn,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes:
        methods, contexts, batches: each with each.
        rounds: that are timed of each.
        lengths: acceptance lengths that turn rounds into tokens a second.
        profile: say which kernels take the time.
    """

    methods: Sequence[Method]
    contexts: Sequence[int] = (512,)
    batches: Sequence[int] = (1,)
    rounds: int = 100
    lengths: Sequence[float] = ()
    profile: bool = False


@torch.inference_mode()
def run(
    shapes: Shapes,
    plan: Plan,
    *,
    dtype: str,
    device: torch.device,
    told: Callable[[RoundTime], None] = lambda _: None,
) -> PaceResult:
    """Measure.

    Args:
        shapes: of target and drafter.
        plan: what to measure.
        dtype: of the weights, a key of ``DTYPES``.
        device: where.
        told: is shown each measurement as it comes.
    """
    rate = copy_rate(device)
    models = Models(shapes, DTYPES[dtype], device)
    found = []
    for context in plan.contexts:
        for batch in plan.batches:
            for method in plan.methods:
                found.append(_measure(models, method, plan, context=context, batch=batch, dtype=dtype, rate=rate))
                told(found[-1])
    return PaceResult(
        shapes=shapes.name,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        copy_terabytes_per_second=rate / 1e12,
        rounds=found,
        provenance=provenance(threads=torch.get_num_threads()),
    )


def _measure(
    models: Models, method: Method, plan: Plan, *, context: int, batch: int, dtype: str, rate: float
) -> RoundTime:
    spare = plan.rounds + UNTIMED + PROFILED + 4
    graphed = rounds_of(models, method, context=context, batch=batch, spare=spare)
    timed = time_rounds(graphed, plan.rounds)
    number = models.target.activations.itemsize
    bytes_ = moved(models.shapes, method, context=context, batch=batch, narrow=dtype == "float8", number=number)
    milliseconds = [1e3 * seconds for seconds in timed.seconds]
    middle = median(milliseconds)
    return RoundTime(
        method=str(method),
        nodes=method.nodes,
        context=context,
        batch=batch,
        dtype=dtype,
        rounds=plan.rounds,
        milliseconds=middle,
        fastest=min(milliseconds),
        slowest=max(milliseconds),
        tokens_a_round=timed.tokens,
        bytes=bytes_._asdict(),
        floor_milliseconds=1e3 * bytes_.total / rate,
        tokens_per_second={
            f"{length:g}": 1e3 * batch * length / middle for length in plan.lengths if length <= method.nodes
        },
        profile=profile_rounds(graphed, PROFILED) if plan.profile else [],
    )
