"""``outrider compare``: the same prompts with and without drafters, side by side in one run."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from outrider.commands.drafter_check import check_drafters
from outrider.commands.opening import open_runner, sized
from outrider.commands.options import Drafting, Loading
from outrider.commands.prompt import as_chat
from outrider.commands.prompts_file import read_rows
from outrider.commands.screen import stderr, stdout
from outrider.commands.tracing import check_trace, open_trace
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.compare import Compared, Trace
    from outrider.compare import Progress as Told
    from outrider.engine.params import SamplingParams
    from outrider.runner import Runner

DIFFERENT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for."""

    model: str
    prompts: Sequence[str]
    file: Path | None
    limit: int | None
    drafters: str
    chat: bool | None
    drafting: Drafting
    loading: Loading
    trace: Path | None
    as_json: bool


def run(request: Request, params: "SamplingParams") -> int:
    """Run the command; return its exit code: 1 when texts differ by more than a near-tie."""
    drafters = [name.strip() for name in request.drafters.split(",")]
    drafting = check_drafters(drafters, request.drafting, request.model)
    check_trace(request)
    prompts = _prompts(request)
    from outrider.compare import PLAIN, check_seed

    check_seed(params)
    runner = open_runner(request.model, drafter="none", drafting=drafting, loading=request.loading)
    ids = encode(runner, prompts, chat=request.chat)
    with open_trace(request, list(dict.fromkeys([PLAIN, *drafters])), runner, params) as trace:
        compared = measure(runner, ids, drafters, params, trace=None if trace is None else trace.recorder)
    _print(request, runner, compared)
    return DIFFERENT if compared.real_differences else 0


def _prompts(request: Request) -> list[str]:
    left = None if request.limit is None else max(request.limit - len(request.prompts), 0)
    rows = [] if request.file is None or left == 0 else read_rows(request.file, left)
    prompts = [*request.prompts, *(row.prompt for row in rows)]
    if not prompts:
        raise UsageError("There are no prompts: give them as arguments or with --prompts FILE.")
    return prompts[: request.limit]


def encode(runner: "Runner", prompts: Sequence[str], *, chat: bool | None) -> list[tuple[int, ...]]:
    """Return token ids; ``chat`` None renders the model's template if it has one."""
    if chat is None:
        chat = runner.tokenizer.chat_template is not None
    return [runner.encode(as_chat(text, None) if chat else text) for text in prompts]


def measure(
    runner: "Runner",
    prompts: Sequence[Sequence[int]],
    drafters: Sequence[str],
    params: "SamplingParams",
    *,
    trace: "Trace | None" = None,
) -> "Compared":
    """Compare, with a bar on a terminal."""
    from outrider.compare import PLAIN, compare

    fitting = sized(runner, prompts, max_tokens=params.max_tokens, max_len=None)
    names = {PLAIN, *drafters}
    with _bar(stderr(), len(prompts) * len(names)) as told:
        return compare(fitting, prompts, drafters, params, progress=told, trace=trace)


@contextmanager
def _bar(console: Console, total: int) -> Iterator["Told"]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("warming up", total=total)
        begun = False

        def told(drafter: str, prompt: int) -> None:
            nonlocal begun
            line = f"prompt {prompt + 1}, {drafter}"
            progress.update(task, description=line, advance=1 if begun else 0)
            begun = True

        yield told


def _print(request: Request, runner: "Runner", compared: "Compared") -> None:
    from outrider.commands.comparison import print_comparison, print_differences

    if request.as_json:
        sys.stdout.write(compared.comparison.model_dump_json(indent=1) + "\n")
    else:
        print_comparison(stdout(), compared)
    print_differences(stderr(), compared, runner.tokenizer.token_text)
