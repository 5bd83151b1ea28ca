"""``outrider bench step``: what a round takes here, by way of drafting, at the shapes of a model, without its files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from outrider.commands.screen import Waiting, stderr, stdout, waiting
from outrider.errors import UsageError

if TYPE_CHECKING:
    import torch

    from outrider.pace.result import PaceResult, RoundTime

SHOWN = 25  # kernels of a profile
WIDTH = 140  # columns: a table of numbers is no good when it breaks


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for."""

    shapes: str
    methods: str
    contexts: str
    batches: str
    rounds: int
    lengths: str
    dtype: str
    device: str
    plans: Path | None
    profile: bool
    out: Path | None
    as_json: bool


def run(request: Request) -> int:
    """Measure, print, and write the result where it is wanted."""
    from outrider.pace.methods import parse
    from outrider.pace.run import DTYPES, Plan
    from outrider.pace.run import run as measure
    from outrider.pace.shapes import read_shapes

    shapes = read_shapes(request.shapes)
    plan = Plan(
        methods=[parse(text) for text in request.methods.split(",")],
        contexts=_numbers("--context", request.contexts),
        batches=_numbers("--batch", request.batches),
        rounds=request.rounds,
        lengths=_lengths(request.lengths),
        profile=request.profile,
    )
    device, dtype = _device(request.device), request.dtype
    if dtype == "auto":
        dtype = "bfloat16" if device.type == "cuda" else "float32"
    if dtype not in DTYPES:
        raise UsageError(f"--dtype {dtype!r}: expected one of auto, {', '.join(DTYPES)}.")
    if request.plans is not None:
        from outrider.kernels.plans import use

        use(request.plans)
    with waiting(stderr()) as telling:
        telling.spin(f"making {shapes.name} with random weights")
        result = measure(shapes, plan, dtype=dtype, device=device, told=lambda found: _tell(telling, found))
    if request.out is not None:
        request.out.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    if request.as_json:
        stdout().print(Text(result.model_dump_json(indent=1)), soft_wrap=True)
    else:
        _print(result)
    return 0


def _tell(telling: Waiting, found: "RoundTime") -> None:
    telling.say(
        f"{found.method}, context {found.context}, batch {found.batch}, {found.dtype}: "
        f"{found.milliseconds:.2f} ms (floor {found.floor_milliseconds:.2f})"
    )


def _device(name: str) -> "torch.device":
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"--device {name!r}: expected cpu or cuda. ({error})") from error


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"{option} {text!r}: expected whole numbers of at least 1, e.g. 512,32768.")
    return numbers


def _lengths(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part]
    except ValueError:
        raise UsageError(f"--lengths {text!r}: expected acceptance lengths, e.g. 3,6.45.") from None


def _print(result: "PaceResult") -> None:
    lengths = sorted({key for one in result.rounds for key in one.tokens_per_second}, key=float)
    console = stdout(width=WIDTH)
    table = Table(box=None, pad_edge=False)
    for title in ("method", "nodes", "context", "batch", "dtype", "ms a round", "floor ms", "times", "GB"):
        table.add_column(title, justify="left" if title in {"method", "dtype"} else "right", no_wrap=True)
    for length in lengths:
        table.add_column(f"tok/s at {length}", justify="right", no_wrap=True)
    for one in result.rounds:
        table.add_row(*_cells(one, lengths))
    console.print(table)
    for one in result.rounds:
        if one.profile:
            console.print(Text(f"\n{one.method}, context {one.context}, batch {one.batch}: kernels of a round"))
            console.print(_profile(one))
    console.print(
        Text(
            f"\n{result.device}, copies {result.copy_terabytes_per_second:.2f} TB/s; median of "
            f"{result.rounds[0].rounds} rounds, random weights. {result.provenance.line()}",
            style="dim",
        )
    )


def _cells(one: "RoundTime", lengths: Sequence[str]) -> list[str]:
    speeds = [f"{one.tokens_per_second[key]:.0f}" if key in one.tokens_per_second else "-" for key in lengths]
    times = one.milliseconds / one.floor_milliseconds
    return [
        one.method, str(one.nodes), str(one.context), str(one.batch), one.dtype, f"{one.milliseconds:.2f}",
        f"{one.floor_milliseconds:.2f}", f"{times:.2f}", f"{sum(one.bytes.values()) / 1e9:.2f}", *speeds,
    ]  # fmt: skip


def _profile(one: "RoundTime") -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("us", "share", "launches", "kernel"):
        table.add_column(title, justify="left" if title == "kernel" else "right", no_wrap=title == "kernel")
    whole = sum(kernel.microseconds for kernel in one.profile)
    for kernel in one.profile[:SHOWN]:
        share = kernel.microseconds / whole if whole else 0.0
        table.add_row(f"{kernel.microseconds:.0f}", f"{share:.1%}", f"{kernel.calls:.0f}", Text(kernel.name))
    return table
