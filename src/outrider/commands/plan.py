"""``outrider plan``: the ways to decode a target on some hardware, with what each should give. Nothing is started."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.adapters.start import STARTERS, starter
from outrider.commands.screen import stderr, stdout, waiting
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.planning.hardware import Device
    from outrider.planning.options import Situation
    from outrider.planning.result import Figure, Plan, PlanOption

USUAL_ENGINES = ("vllm", "sglang", "outrider")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    model: str
    gpu: str | None
    gpus: int
    here: bool
    drafter: str | None
    context: int
    concurrency: int
    accept: Sequence[str]
    speed: Sequence[str]
    engine: Sequence[str]
    as_json: bool


def run(request: Request) -> int:
    """Print the plan.

    Raises:
        OutriderError: target or hardware is not known.
    """
    with waiting(stderr()) as telling:
        telling.spin("Planning")
        plan = made(request)
    if request.as_json:
        sys.stdout.write(plan.model_dump_json(indent=1) + "\n")
    else:
        _print(stdout(), plan)
    return 0


def made(request: Request) -> "Plan":
    """Return the plan."""
    from outrider.planning.options import options
    from outrider.planning.result import Plan
    from outrider.provenance import provenance

    device, devices = _hardware(request)
    situation = _situation(request, device, devices)
    found, left_out, scale = options(situation)
    return Plan(
        target=request.model,
        hardware=device.name,
        devices=devices,
        context=request.context,
        batch=request.concurrency,
        scale=scale,
        options=found,
        left_out=left_out,
        notes=[f"Bandwidth: {device.source}.", f"Bytes of a pass: {situation.size.source}."],
        provenance=provenance(),
    )


def _hardware(request: Request) -> "tuple[Device, int]":
    from outrider.planning.hardware import device, here, names

    if request.here == (request.gpu is not None):
        raise UsageError(f"On which hardware? Give --gpu ({', '.join(names())}) or --here.")
    if request.gpu is not None:
        return device(request.gpu), request.gpus
    return here()


def _situation(request: Request, device: "Device", devices: int) -> "Situation":
    from outrider.planning.expected import measured
    from outrider.planning.options import Situation
    from outrider.planning.sizes import drafter_sizes, sizes
    from outrider.planning.traffic import Load

    size = sizes(request.model)
    drafter = size.drafter
    if request.drafter is not None and (drafter is None or request.drafter != drafter.name):
        drafter = drafter_sizes(request.drafter)
        if drafter is None:
            raise UsageError(f"--drafter {request.drafter}: expected a DFlash drafter whose files are here.")
    return Situation(
        target=request.model,
        size=size,
        device=device,
        load=Load(context=request.context, batch=request.concurrency, devices=devices),
        drafter=drafter,
        versions=_versions(request.engine),
        measured=[measured(text) for text in request.accept],
        speeds=dict(_speed(text) for text in request.speed),
    )


def _versions(given: Sequence[str]) -> dict[str, str | None]:
    """Return engines with their versions: the newest that was looked at, where none is named."""
    found: dict[str, str | None] = {}
    for text in given or USUAL_ENGINES:
        name, _, version = text.partition("=")
        one = starter(name)
        found[name] = version or (one.checked[1] if one.serves else None)
    return found


def _speed(text: str) -> tuple[tuple[str, str], float]:
    """Read ``METHOD@ENGINE=TOKENS_A_SECOND``."""
    where, _, value = text.rpartition("=")
    method, _, engine = where.partition("@")
    try:
        speed = float(value)
    except ValueError:
        speed = 0.0
    if speed <= 0 or not method or engine not in STARTERS:
        raise UsageError(
            f"--speed {text!r}: expected METHOD@ENGINE=TOKENS_A_SECOND, for example mtp@sglang=73.5 or plain@vllm=40."
        )
    return (engine, method), speed


def _print(console: Console, plan: "Plan") -> None:
    several = f"{plan.devices} x " if plan.devices > 1 else ""
    head = f"{plan.target} on {several}{plan.hardware}, {plan.batch} at once, {plan.context} tokens of context"
    console.print(Text(head, style="bold"))
    if plan.scale is not None:
        said = f"By the measured speed a round takes {plan.scale:.2f} times what the model says; all others are scaled."
        console.print(Text(said, style="yellow"), soft_wrap=True)
    console.print(_table(plan.options))
    for number, option in enumerate(plan.options, start=1):
        _print_option(console, number, option)
    for line in (*plan.left_out, *plan.notes):
        console.print(Text(line, style="dim"), soft_wrap=True)
    console.print(Text("* measured, ^ published, ~ modelled.", style="dim"))


def _table(options: "Sequence[PlanOption]") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "way", "tokens a round", "round ms", "tokens/s", "pays from", "GiB", "effort"):
        table.add_column(name, overflow="fold", justify="left" if name in ("way", "effort") else "right")
    for number, option in enumerate(options, start=1):
        memory = f"{option.memory_gib:.1f}" if option.fits else f"{option.memory_gib:.1f} too much"
        table.add_row(
            str(number), Text(option.name), _figure(option.tokens_per_round, ".2f"), _figure(option.round_ms, ".1f"),
            _figure(option.tokens_per_second, ".0f"), f"{option.break_even:.2f}", memory, option.effort,
        )  # fmt: skip
    return table


def _figure(figure: "Figure", form: str) -> str:
    mark = {"measured": "*", "published": "^", "modelled": "~"}[figure.how]
    if figure.low == figure.high:
        return f"{figure.value:{form}}{mark}"
    return f"{figure.low:{form}}-{figure.high:{form}}{mark}"


def _print_option(console: Console, number: int, option: "PlanOption") -> None:
    console.print(Text(f"{number:>3}  {option.command}"), soft_wrap=True)
    for risk in option.risks:
        console.print(Text(f"     risk: {risk}", style="yellow"), soft_wrap=True)
