"""Log files of others as rows of named numbers: JSON, JSON lines, CSV, and text. Knows no name's meaning.

Text is taken as people's trainers print it: ``key=value`` and ``Key: value``, dictionaries of Python and JSON, progress
bars, records that rich has wrapped over lines.
"""

import ast
import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from outrider.errors import UsageError

Row = dict[str, float]
STEP, BAR_STEP, BAR_END = "step", "step of a bar", "end of a bar"
STEPS = ("step", "global_step", "_step")
NESTED = 8  # objects in each other; a log has fewer
LARGEST = 1 << 31  # bytes
NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
PAIR = re.compile(rf"(?P<key>[A-Za-z_][\w./-]*)\s*[=:]\s*(?P<value>{NUMBER})(?![\w.:])", re.IGNORECASE)
STEP_WORD = re.compile(r"\b(?:global[_ ])?step[ :=]+(\d+)", re.IGNORECASE)
SECTION = re.compile(r"\b(train|eval|val)\w*\s*$", re.IGNORECASE)  # SpecForge: Eval - Step 20 [20/99], Loss: 4.7
MODELOPT = re.compile(r"Step (\d+) (Training Acc|Estimated Training AR|AR): \[?([^\]]*)\]?")
BAR = re.compile(r"\|\s*(\d+)/(\d+)\s*\[")
RECORD = re.compile(r"^\s*(?:\[[\d:/ ]+\]|\d{4}-\d\d-\d\d[T ][\d:.,]+)?\s*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")
PLACE_IN_CODE = re.compile(r"\s+[\w.]+\.py:\d+\s*$")
COLOURS = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
MODELOPT_NAMES = {"Training Acc": "train_acc/parallel_{}_step_0", "Estimated Training AR": "estimated_training_ar"}


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; those without a step have that of the row before.

    Raises:
        UsageError: it cannot be read.
    """
    text = _text(path)
    kind = path.suffix.lower()
    rows: Iterable[Row]
    if kind in (".csv", ".tsv"):
        rows = _csv_rows(text, path.stem, "\t" if kind == ".tsv" else ",")
    elif kind == ".json":
        rows = _json_rows(text, path)
    else:
        rows = _text_rows(text)
    return _joined(row for row in rows if row)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(
                f"{path} has {path.stat().st_size >> 30} GB; a log that large is not read: give an extract."
            )
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error


def _csv_rows(text: str, stem: str, delimiter: str) -> Iterator[Row]:
    for row in csv.DictReader(text.splitlines(), delimiter=delimiter):
        names = {(name or "").strip().lower() for name in row}
        values = dict(row)
        if names == {"wall time", "step", "value"}:  # TensorBoard: one number a file, which is named after it
            values = {STEP: row.get("Step"), stem: row.get("Value")}
        yield _numbers(values)


def _json_rows(text: str, path: Path) -> Iterable[Row]:
    try:
        held = json.loads(text)
    except json.JSONDecodeError:
        return _text_rows(text)  # JSON lines under another name
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply; it is no log.") from error
    if isinstance(held, dict):
        held = held.get("log_history", held)
    if isinstance(held, dict):
        held = _from_columns(held)
    return [_numbers(row) for row in held if isinstance(row, dict)] if isinstance(held, list) else []


def _from_columns(held: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Turn lists of equal length into rows; anything else is one row."""
    columns = {key: value for key, value in held.items() if isinstance(value, list) and value}
    if not columns or len({len(value) for value in columns.values()}) > 1:
        return [dict(held)]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _text_rows(text: str) -> Iterator[Row]:
    for line in _records(text.replace("\r", "\n").splitlines()):
        yield _text_row(line)


def _records(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines of a record that rich has wrapped: those that follow it, indented and without a level."""
    held = ""
    for raw in lines:
        line = COLOURS.sub("", raw)
        starts, shown = RECORD.match(line) is not None, PLACE_IN_CODE.sub("", line)
        if held and not starts and line[:4].isspace() and line.strip():
            held += f" {shown.strip()}"
            continue
        yield held
        held = shown if starts else ""
        if not starts:
            yield line
    yield held


def _text_row(line: str) -> Row:
    whole, step, bar = _literal(line), STEP_WORD.search(line), BAR.search(line)
    own: Row = {STEP: float(step[1])} if step else {}
    if bar is not None:
        own |= {BAR_STEP: float(bar[1]), BAR_END: float(bar[2])}
    if whole is not None:
        return own | _numbers(whole)
    if (match := MODELOPT.search(line)) is not None:
        return own | _modelopt(match[2], match[3])
    found = _numbers({match["key"]: match["value"] for match in PAIR.finditer(line)})
    section = SECTION.search(line.partition(" - Step")[0]) if " - Step" in line else None
    if section is not None:
        found = {f"{section[1].lower()}/{key}": value for key, value in found.items() if key.lower() != STEP}
    return found | own


def _modelopt(name: str, values: str) -> Row:
    numbers = [number for text in values.split(",") if (number := _number(text)) is not None]
    if name == "AR":
        return {"validate_ar": numbers[0]} if numbers else {}
    return {MODELOPT_NAMES[name].format(index): number for index, number in enumerate(numbers)}


def _literal(line: str) -> Mapping[str, Any] | None:
    """Return the dictionary that a line holds, as Python or JSON writes it."""
    start, end = line.find("{"), line.rfind("}")
    if not 0 <= start < end:
        return None
    text = line[start : end + 1]
    for read in (json.loads, ast.literal_eval):
        try:
            held = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(held, dict):
            return held
    return None


def _numbers(values: Mapping[str, Any], prefix: str = "") -> Row:
    """Return the numbers of a dictionary, those of inner ones and of lists under joined names."""
    row: Row = {}
    if prefix.count("/") > NESTED:
        return row
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            row |= _numbers(value, f"{name}/")
        elif isinstance(value, list):
            row |= _numbers({str(index): each for index, each in enumerate(value)}, f"{name}/")
        elif (number := _number(value)) is not None:
            row[name] = number
    return row


def _number(value: Any) -> float | None:
    """Return a number, also one in a string or with a percent sign; NaN counts, for it tells of a run that broke."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value) if not isinstance(value, str) else _parsed(value.strip())
    except (ValueError, OverflowError):
        return None


def _parsed(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def _joined(rows: Iterable[Row]) -> list[Row]:
    """Give rows without a step that of the row before, and unite neighbours of one step whose names differ."""
    joined: list[Row] = []
    for step, row in _with_steps(list(rows)):
        last = joined[-1] if joined else None
        if last is not None and last[STEP] == step and not row.keys() & last.keys():
            last.update(row)
        elif row:
            joined.append(row | {STEP: step})
    return joined


def _with_steps(rows: list[Row]) -> Iterator[tuple[float, Row]]:
    """Yield steps and what else is in the rows: steps from their names, else from bars, else counted."""
    named = any(_named_step(row) is not None for row in rows)
    barred = any(BAR_STEP in row for row in rows)
    step, before, bar = 0.0, 0.0, 0.0
    for row in rows:
        if named:
            found = _named_step(row)
            step = step if found is None else found
        elif barred and BAR_STEP in row:
            before += row[BAR_END] if row[BAR_STEP] < bar else 0.0  # bars begin anew every epoch
            bar = row[BAR_STEP]
            step = before + bar
        elif not barred:
            step += 1
        if named and BAR_STEP in row and _named_step(row) is None:
            continue  # counts within the epoch, beside lines that count in all
        yield step, {key: value for key, value in row.items() if key.lower() not in (*STEPS, BAR_STEP, BAR_END)}


def _named_step(row: Row) -> float | None:
    return next((row[key] for key in row if key.lower() in STEPS and math.isfinite(row[key])), None)
