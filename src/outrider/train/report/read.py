"""From the folders and files that a user names to one run: our own metrics, or the logs of others, united by step."""

from collections.abc import Sequence
from pathlib import Path

from outrider.errors import UsageError
from outrider.train.report.columns import Column, format_of
from outrider.train.report.foreign import run_from_rows, sentences, understood_columns
from outrider.train.report.own import NAME, is_own, read_own
from outrider.train.report.rows import Row, read_rows
from outrider.train.report.run import Run

STATE = "trainer_state.json"  # of Transformers' Trainer
LOGS = (".jsonl", ".csv", ".tsv", ".log", ".txt", ".out")
KNOWN = f"{NAME} of outrider train, {STATE}, JSON lines, CSV, or the text that a trainer prints"


def read_run(places: Sequence[Path]) -> Run:
    """Return the run that these folders and files tell of.

    Args:
        places: one run: its folder, or its log and others that add to it, a table of served acceptance for example.

    Raises:
        UsageError: they do not exist, are damaged, hold no number that is understood, or are several runs.
    """
    files = [file for place in places for file in _files(place)]
    own = [file for file in files if is_own(file)]
    if len(own) > 1:
        raise UsageError(f"{own[0]} and {own[1]} are two runs; report on one at a time.")
    if own and len(files) > 1:
        raise UsageError(f"{own[0]} is a run of its own; the other files cannot be added to it: leave them out.")
    return read_own(own[0]) if own else _foreign(files, places)


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise UsageError(f"{place} does not exist; give a run's folder or its log: {KNOWN}.")
    if (place / NAME).is_file():
        return [place / NAME]
    states = [file for file in (place / STATE, *_checkpoint_states(place)) if file.is_file()]
    if states:
        return states[:1]
    logs = sorted(file for file in place.iterdir() if file.is_file() and file.suffix.lower() in LOGS)
    if not logs:
        raise UsageError(f"{place} holds no log; expected {KNOWN}.")
    return logs


def _checkpoint_states(folder: Path) -> list[Path]:
    """Return the states of a Trainer's checkpoints, the latest first: each holds all that was logged before."""
    numbered = [(path.name.rpartition("-")[2], path) for path in folder.glob("checkpoint-*")]
    latest = sorted(((int(number), path) for number, path in numbered if number.isdigit()), reverse=True)
    return [path / STATE for _, path in latest]


def _foreign(files: Sequence[Path], places: Sequence[Path]) -> Run:
    rows: list[Row] = []
    columns: dict[str, Column] = {}
    understood: list[str] = []
    for file in files:
        found = read_rows(file)
        known, others = understood_columns(found)
        understood += sentences(file.name, found, known, others)
        rows += found
        columns |= known
    run = run_from_rows(rows, columns, format_name=format_of(columns) or "a trainer that is not recognised")
    if not run.steps and not run.evaluations:
        raise UsageError(
            f"{places[0]}: no loss, accuracy or acceptance length is understood; expected {KNOWN}, with names such as "
            "step, loss, accuracy, eval/loss, tau."
        )
    return Run(run.steps, run.evaluations, run.facts, tuple(map(str, files)), tuple(understood))
