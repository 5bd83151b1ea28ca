"""``outrider demo``: a small real model on this machine, plain and with three kinds of drafts, and what they gained.

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
from outrider.commands.options import Drafting, Loading
from outrider.commands.prompts_file import Row, rows_of
from outrider.commands.screen import stdout
from outrider.commands.streaming import SHADES, run_text, shower

if TYPE_CHECKING:
    from outrider.compare import Compared
    from outrider.engine.params import SamplingParams
    from outrider.runner import Runner

MODEL, DRAFT_MODEL = "smollm2-135m", "smollm2-135m-dflash"
DRAFTERS = ("ngram", "dflash", "ddtree")
WRITTEN_WITH = "ddtree"  # the text that is shown as it is written
MAX_TOKENS = 72  # with four prompts four times about a minute on two slow cores
SHOWN = "edit"  # the category of the prompt that is shown as it is written


def run() -> int:
    """Run the command; return its exit code."""
    from outrider.engine.params import SamplingParams

    console = stdout()
    rows = demo_rows()
    drafting = Drafting(draft_model=DRAFT_MODEL)
    runner = open_runner(MODEL, drafter=WRITTEN_WITH, drafting=drafting, loading=Loading())
    prompts = encode(runner, [row.prompt for row in rows], chat=True)
    params = SamplingParams(max_tokens=MAX_TOKENS)
    _show(console, runner, rows, prompts, params)
    console.print(Text("\nNow all four prompts, plain and with each kind of drafts, in turns:", style="dim"))
    compared = measure(runner, prompts, DRAFTERS, params)
    print_comparison(console, compared)
    _print_kinds(console, rows, compared)
    _print_verdict(console, compared)
    print_differences(console, compared, runner.tokenizer.token_text)
    return DIFFERENT if compared.real_differences else 0


def demo_rows() -> list[Row]:
    """Return the prompts that come with the package."""
    data = files("outrider").joinpath("data/demo.jsonl")
    return rows_of(data.read_text(encoding="utf-8"), "demo.jsonl")


def _show(
    console: Console,
    runner: "Runner",
    rows: Sequence[Row],
    prompts: Sequence[Sequence[int]],
    params: "SamplingParams",
) -> None:
    """Write one text as it comes."""
    index = next(i for i, row in enumerate(rows) if row.category == SHOWN)
    heading = Text(f"{MODEL} edits a piece of code. ", style="bold")
    if console.is_terminal:
        heading.append("Coloured tokens", style=SHADES[0])
        heading.append(" were guessed by a small drafter and accepted; the further ahead, the ")
        heading.append("bluer", style=SHADES[-1])
        heading.append(":")
    console.print(heading)
    fitting = sized(runner, [prompts[index]], max_tokens=params.max_tokens, max_len=None)
    if run_text(fitting, prompts[index], params, shower()).finish_reason == "cancelled":
        raise KeyboardInterrupt
    console.print()


def _print_kinds(console: Console, rows: Sequence[Row], compared: "Compared") -> None:
    """Print the speed by kind of text, as the gain depends on little else."""
    from outrider.compare import PLAIN

    table = Table("kind of text", "plain tokens/s", *DRAFTERS)
    for column in table.columns[1:]:
        column.justify = "right"
    for index, row in enumerate(rows):
        plain, *drafted = (compared.completions[name][index].tokens_per_second for name in (PLAIN, *DRAFTERS))
        table.add_row(row.category, f"{plain:.1f}", *(f"{speed / plain:.2f} x" for speed in drafted))
    console.print(table)


def _print_verdict(console: Console, compared: "Compared") -> None:
    plain, *drafted = compared.comparison.methods
    best = max(drafted, key=lambda method: method.ratio)
    acceptance = Acceptance.from_sequences(text.rounds for text in compared.completions[best.drafter])
    wasted = acceptance.num_drafted - acceptance.num_accepted
    same = "the same texts, token for token," if best.texts_equal else "the texts"
    gain = (
        f"Gained: with {best.drafter} the model wrote {same} at {best.ratio:.2f} times the speed, in "
        f"{best.rounds} passes instead of {plain.rounds}."
    )
    cost = (
        f"Cost: {wasted} of {acceptance.num_drafted} guessed tokens were computed for nothing. ngram guesses from the "
        f"text itself and needs no weights; dflash and ddtree run {DRAFT_MODEL}, 17 million parameters that "
        "were trained for this model. Where drafting does not pay, it stops by itself."
    )
    for line in (gain, cost, *_NEXT):
        console.print(Text(line), soft_wrap=True)


_NEXT = (
    "Next, on your own text:",
    f'  outrider generate {MODEL} --chat --drafter {WRITTEN_WITH} "Your prompt"',
    f"  outrider compare {MODEL} --drafter {','.join(DRAFTERS)} --prompts YOUR.jsonl",
)
