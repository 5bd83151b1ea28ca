"""``outrider demo``: a small real model on this machine, with and without drafts, and what it gained.

Its four prompts are kinds of work in which texts repeat what they were given, and one in which they do not.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.acceptance import Acceptance
from outrider.commands.compare import DIFFERENT, encode, measure
from outrider.commands.comparison import print_comparison, print_differences
from outrider.commands.opening import open_runner, sized
from outrider.commands.prompts_file import Row, rows_of
from outrider.commands.screen import stdout
from outrider.commands.streaming import ACCEPTED, run_text, shower

if TYPE_CHECKING:
    from outrider.compare import Compared
    from outrider.load import Runner

MODEL = "smollm2-135m"
DRAFTER = "ngram"
MAX_TOKENS = 72  # with four prompts twice under a minute on two slow cores
SHOWN = "edit"  # the category of the prompt that is shown as it is written


def run() -> int:
    """Run the command; return its exit code."""
    from outrider.engine.params import SamplingParams

    console = stdout()
    rows = demo_rows()
    runner = open_runner(MODEL, drafter=DRAFTER, dtype="auto", device="auto")
    prompts = encode(runner, [row.prompt for row in rows], chat=True)
    params = SamplingParams(max_tokens=MAX_TOKENS)
    _show(console, runner, rows, prompts, params)
    console.print(Text("\nNow all four prompts, plain and with drafts, in turns:", style="dim"))
    compared = measure(runner, prompts, [DRAFTER], params)
    print_comparison(console, compared)
    _print_kinds(console, rows, compared)
    _print_verdict(console, compared)
    print_differences(console, compared, runner.tokenizer.token_text)
    return DIFFERENT if compared.real_differences else 0
