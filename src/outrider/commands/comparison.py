"""A comparison as people read it: a table of methods, their position curves, and what differs."""

from collections.abc import Callable
from typing import Literal

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from outrider.acceptance import Acceptance
from outrider.commands.curve import position_plot
from outrider.compare import Compared
from outrider.differences import NOTHING, Difference
from outrider.results import MethodResult

ALARM = "bold red"
TokenText = Callable[[int], str]


def print_comparison(console: Console, compared: Compared) -> None:
    """Print the table and the curves."""
    console.print(_table(compared))
    curves = [_curve(m) for m in compared.comparison.methods if any(m.position_rates)]
    if curves:
        console.print(Text("Share of all rounds that accepted draft positions 1..k:", style="dim"))
        console.print(Group(*curves))


def print_differences(console: Console, compared: Compared, tokens_text: TokenText) -> None:
    """Print a line for each text that differs: near-ties quietly, the others not."""
    for found in compared.differences:
        style = "dim" if found.near_tie else ALARM
        console.print(Text(_difference(found, tokens_text), style=style), soft_wrap=True)


def _table(compared: Compared) -> Table:
    table = Table()
    for name in ("drafter", "tokens/s", "ratio", "rounds", "acceptance length", "rate", "texts"):
        wide = name == "acceptance length"  # two words that may stand below each other
        justify: Literal["left", "right"] = "left" if name in {"drafter", "texts"} else "right"
        table.add_column(name, justify=justify, no_wrap=not wide)
    for method in compared.comparison.methods:
        texts = compared.completions[method.drafter]
        acceptance = Acceptance.from_sequences([text.rounds for text in texts])
        table.add_row(
            method.drafter,
            f"{method.tokens_per_second:.1f}",
            _ratio(method, len(texts)),
            str(method.rounds),
            "-" if acceptance.length is None else f"{acceptance.length:.2f}",
            "-" if acceptance.rate is None else f"{acceptance.rate:.1%}",
            _equality(method, compared),
        )
    return table


def _ratio(method: MethodResult, num_prompts: int) -> str:
    if method.drafter == "none":
        return "1"
    if num_prompts == 1:  # nothing to resample: no interval
        return f"{method.ratio:.2f}"
    return f"{method.ratio:.2f} [{method.ratio_low:.2f}, {method.ratio_high:.2f}]"


def _equality(method: MethodResult, compared: Compared) -> Text:
    if method.drafter == "none":
        return Text("-")
    if method.texts_equal is None:
        return Text("same law, other draws")
    if method.texts_equal:
        return Text("equal")
    real = sum(found.drafter == method.drafter for found in compared.real_differences)
    if real:
        return Text(f"{real} DIFFER", style=ALARM)
    return Text(f"equal but for {len(method.near_ties)} near-ties")


def _curve(method: MethodResult) -> Group:
    return Group(Text(method.drafter, style="bold"), position_plot(method.position_rates))


def _difference(found: Difference, tokens_text: TokenText) -> str:
    kind = "near-tie" if found.near_tie else "REAL DIFFERENCE"
    plain, drafted = (
        "the end" if token == NOTHING else repr(tokens_text(token))
        for token in (found.plain_token, found.drafted_token)
    )
    return (
        f"{kind}: {found.drafter}, prompt {found.prompt + 1}, token {found.position + 1}: plain decoding has "
        f"{plain}, with drafts {drafted}; margin {found.margin:.2g}"
    )
