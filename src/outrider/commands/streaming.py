"""A text shown as it comes: drafted tokens that were accepted in colour, on a terminal.

A pipe gets the text and nothing else. Ctrl-C ends the text, not the program.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from outrider.commands.screen import stdout

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.runner import Runner
    from outrider.transcript import Completion, Piece

ACCEPTED = "green"


def run_text(
    runner: "Runner",
    prompt: Sequence[int],
    params: "SamplingParams",
    show: "Callable[[Piece], None]",
) -> "Completion":
    """Complete a prompt, showing each piece; after Ctrl-C the completion is what came until then.

    Its ``finish_reason`` is then ``cancelled``.
    """
    from outrider.transcript import Transcript

    transcript = Transcript(runner.tokenizer, params.stop)
    transcript.sequence = runner.engine.add(
        tuple(prompt), params, stop_ids=runner.tokenizer.stop_ids, watch=transcript.watch
    )
    try:
        for event in runner.engine.run():
            transcript.take(event)
            show(transcript.pieces[-1])
    except KeyboardInterrupt:
        runner.engine.cancel(transcript.sequence)
        transcript.sequence.finish_reason = "cancelled"
    finally:
        runner.engine.cancel(transcript.sequence)
    return transcript.completion()


def shower() -> "Callable[[Piece], None]":
    """Return what shows a piece on standard output."""
    console = stdout()
    return _in_colour(console) if console.is_terminal else _plainly


def _in_colour(console: Console) -> "Callable[[Piece], None]":
    def show(piece: "Piece") -> None:
        style = ACCEPTED if piece.origin == "draft" else ""
        console.print(Text(piece.text, style=style), end="", soft_wrap=True)

    return show


def _plainly(piece: "Piece") -> None:
    sys.stdout.write(piece.text)
    sys.stdout.flush()


def nothing(_piece: "Piece") -> None:
    """Show nothing."""
