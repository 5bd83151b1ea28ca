"""``outrider train dflash``: trains a drafter on what its target wrote, and measures it in the real engine.

Started by torchrun it is one of several processes, of which the first speaks.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from outrider.commands.exit_codes import INTERRUPTED
from outrider.commands.opening import open_runner
from outrider.commands.options import Drafting, Loading
from outrider.commands.screen import stderr, stdout
from outrider.commands.train_dflash_options import Learning, Making, Running

if TYPE_CHECKING:
    from outrider.train.loop import Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for."""

    model: str
    data: Path
    out: Path
    making: Making
    learning: Learning
    running: Running
    loading: Loading
    as_json: bool


def run(request: Request) -> int:
    """Run the command; return its exit code."""
    options, shape = request.learning.options(), request.making.shape()
    from outrider.train.begin import Wish, begin
    from outrider.train.distributed import is_first, joined, own_device
    from outrider.train.loop import Trainer
    from outrider.train.start import Model

    running, report = request.running, _reporter(speaks=is_first())
    here = Loading(dtype=request.loading.dtype, device=own_device(request.loading.device))
    runner = open_runner(request.model, drafter="none", drafting=Drafting(), loading=here)
    model = Model(runner.target, runner.checkpoint, frozenset(runner.tokenizer.stop_ids))
    wish = Wish(
        data=request.data,
        out=request.out,
        shape=shape,
        init=request.making.init,
        other_target=running.other_target,
        options=options,
    )
    task = begin(model, wish, report)
    with joined(model.target.device) as group:
        ended = Trainer(task, group, report).run(resume=running.resume, minutes=running.minutes)
    if is_first():
        _print(ended, as_json=request.as_json)
    return INTERRUPTED if ended.reason == "interrupted" else 0


def _reporter(*, speaks: bool) -> Callable[[str], None]:
    console = stderr()

    def report(line: str) -> None:
        if speaks:
            console.print(Text(line), soft_wrap=True)

    return report


def _print(ended: "Ended", *, as_json: bool) -> None:
    if as_json:
        values = asdict(ended) | {"checkpoint": None if ended.checkpoint is None else str(ended.checkpoint)}
        sys.stdout.write(json.dumps(values, indent=1) + "\n")
        return
    how = {"complete": "Complete", "interrupted": "Interrupted", "time": "Time is up"}[ended.reason]
    rest = "" if ended.reason == "complete" else "; go on with --resume"
    stdout().print(Text(f"{how} at step {ended.step} of {ended.steps}: {ended.checkpoint}{rest}."))
    if ended.evaluation is not None:
        found = ended.evaluation
        stdout().print(
            Text(
                f"Acceptance length {found.tau:.2f} ({found.tau_low:.2f} to {found.tau_high:.2f}) on {found.prompts} "
                "held-out prompts."
            )
        )
