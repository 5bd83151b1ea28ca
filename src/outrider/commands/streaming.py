"""A text shown as it comes: drafted tokens that were accepted in colour, on a terminal.

A pipe gets the text and nothing else. Ctrl-C ends the text, not the program.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from outrider.commands.screen import stdout

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.runner import Runner
    from outrider.transcript import Completion, Piece

# From green to blue by depth in the draft tree: colours of one brightness, to be read on dark and light ground.
SHADES = ("green", "color(35)", "color(36)", "color(37)", "color(38)", "color(39)")


def shade(depth: int) -> str:
    """Return the style of a token that was accepted from this depth; none for 0, the target's own."""
    return SHADES[min(depth, len(SHADES)) - 1] if depth else ""


def run_text(
    runner: "Runner",
    prompt: Sequence[int],
    params: "SamplingParams",
    show: "Callable[[Piece], None]",
) -> "Completion":
    """Complete a prompt, showing each piece; after Ctrl-C the completion is what was shown until then.

    Its ``finish_reason`` is then ``cancelled``.
    """
    stream = runner.stream(tuple(prompt), params)
    try:
        for piece in stream:
            show(piece)
    except KeyboardInterrupt:  # perhaps while the last piece was shown: still an interrupt
        return replace(stream.completion(), finish_reason="cancelled")
    return stream.completion()


def shower() -> "Callable[[Piece], None]":
    """Return what shows a piece on standard output."""
    console = stdout()
    return _in_colour(console) if console.is_terminal else _plainly


def _in_colour(console: Console) -> "Callable[[Piece], None]":
    def show(piece: "Piece") -> None:
        console.print(Text(piece.text, style=shade(piece.depth)), end="", soft_wrap=True)

    return show


def _plainly(piece: "Piece") -> None:
    sys.stdout.write(piece.text)
    sys.stdout.flush()


def nothing(_piece: "Piece") -> None:
    """Show nothing."""
