"""``outrider trace``: what a trace says, and one of its rounds as a drawn tree. Needs no torch."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.text import Text

from outrider.commands.screen import stderr, stdout
from outrider.commands.trace_print import print_round, print_summary, token_text_of
from outrider.errors import UsageError
from outrider.results import Record
from outrider.traces.format import TraceHeader, TraceRow
from outrider.traces.reader import TraceReader
from outrider.traces.summary import DrafterSummary, summarise

WIDEST = 1000  # columns: a node stands on one line, however deep


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for; prompt and round count from 1."""

    file: Path
    round: int | None
    prompt: int | None
    as_json: bool


class TraceReport(Record):
    """What ``outrider trace --json`` prints; ``rounds`` are those that --round asked for, one a drafter."""

    header: TraceHeader
    truncated: bool
    drafters: list[DrafterSummary]
    rounds: list[TraceRow]


def run(request: Request) -> None:
    """Run the command."""
    reader = TraceReader(request.file)
    choice = _Choice(request)
    drafters = summarise(choice.watch(reader.rows()))
    rounds = choice.rounds()
    if reader.truncated:
        stderr().print(Text(f"{request.file}: its last line is cut short and was left out.", style="dim"))
    if request.as_json:
        report = TraceReport(
            header=reader.header,
            truncated=reader.truncated,
            drafters=drafters,
            rounds=rounds if request.round is not None else [],
        )
        sys.stdout.write(report.model_dump_json(indent=1) + "\n")
    else:
        print_summary(stdout(), reader.header, drafters)
        _print_rounds(reader.header, rounds)


@dataclass(slots=True)
class _Choice:
    """Picks what to draw while all rows go by: the round asked for, of each drafter; else the one that accepted most.

    A round without a prompt is one of the first prompt.
    """

    request: Request
    prompts: dict[int, int] = field(default_factory=dict)  # the last round of each
    _found: dict[str, TraceRow] = field(default_factory=dict)

    def watch(self, rows: Iterator[TraceRow]) -> Iterator[TraceRow]:
        """Pass on the rows of the prompt that is wanted, or of all."""
        for row in rows:
            self.prompts[row.prompt] = max(row.round, self.prompts.get(row.prompt, 0))
            if self.request.prompt in (None, row.prompt + 1):
                self._consider(row)
                yield row

    def _consider(self, row: TraceRow) -> None:
        wanted = self.request.round
        if wanted is None:
            best = next(iter(self._found.values()), None)
            if row.tokens and (best is None or len(row.path) > len(best.path)):
                self._found = {"": row}
        elif row.round == wanted and row.prompt == (self.request.prompt or 1) - 1:
            self._found[row.drafter] = row

    def rounds(self) -> list[TraceRow]:
        """Return the rounds to draw.

        Raises:
            UsageError: the prompt or the round that was asked for is not there.
        """
        file, prompt, wanted = self.request.file, self.request.prompt or 1, self.request.round
        if self.request.prompt is not None and prompt - 1 not in self.prompts:
            known = ", ".join(str(index + 1) for index in sorted(self.prompts)) or "none"
            raise UsageError(f"--prompt {prompt}: {file} holds rounds of these prompts: {known}.")
        if wanted is not None and not self._found:
            last = self.prompts.get(prompt - 1, 0)
            raise UsageError(f"--round {wanted}: {file} holds rounds 1 to {last} of prompt {prompt}.")
        return list(self._found.values())


def _print_rounds(header: TraceHeader, rounds: list[TraceRow]) -> None:
    """Draw the rounds in which something was proposed, or else say what there was."""
    drawn = [row for row in rounds if row.tokens] or rounds
    token_text = token_text_of(header.model) if drawn else str
    for row in drawn:
        print_round(stdout(width=WIDEST), row, token_text)
