"""What ``outrider train data`` says at the end: samples by source, how answers ended, speed."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.results import Record
from outrider.train.manifest import Manifest

FATES = {
    "ended": "ended by themselves",
    "full": "reached the limit of tokens",
    "looping": "were cut where they began to loop",
    "empty": "were empty and dropped",
    "refused": "came back from the server unusable and were dropped",
}


class DataResult(Record):
    """The outcome of a run: ``outrider train data --json``."""

    folder: str
    samples: int
    response_tokens: int
    new_response_tokens: int
    seconds: float
    tokens_per_second: float
    manifest: Manifest


def print_data(console: Console, result: DataResult) -> None:
    """Print the samples of the folder, by source."""
    table = Table("source", "prompts", "samples", "response tokens")
    for column in table.columns[1:]:
        column.justify = "right"
    for source in result.manifest.sources:
        table.add_row(Text(source.name), f"{source.prompts:,}", f"{source.samples:,}", f"{source.response_tokens:,}")
    console.print(table)
    for line in _lines(result):
        console.print(Text(line), soft_wrap=True)


def _lines(result: DataResult) -> list[str]:
    rows, fates = result.manifest.rows, result.manifest.fates.model_dump()
    left = {"broken": rows.broken, "there twice": rows.duplicates, "too long": rows.too_long}
    passed = ", ".join(f"{count:,} {why}" for why, count in left.items() if count)
    ends = ", ".join(f"{count:,} {FATES[name]}" for name, count in fates.items() if count)
    total = f"{result.samples:,} samples with {result.response_tokens:,} response tokens in {result.folder}"
    speed = f"{result.new_response_tokens:,} in {result.seconds:.1f} s ({result.tokens_per_second:,.0f} tokens/s)"
    return [
        f"Rows: {rows.rows:,}; passed over: {passed or 'none'}.",
        f"Answers: {ends}.",
        f"{total}; now written: {speed}.",
    ]
