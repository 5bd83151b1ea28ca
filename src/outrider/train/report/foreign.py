"""Somebody else's run from rows of named numbers: which names are what, and what was passed over, said in sentences.

Lines of one step are united; logged shares in percent become shares.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from outrider.train.report.columns import Column, Place, What, understand
from outrider.train.report.rows import STEP, Row
from outrider.train.report.run import Evaluation, Facts, Run, Slots, Step, finite

SHOWN = 6  # names passed over, in a sentence
PERCENT = 1.5  # shares of which one is above this are in percent
Named = Mapping[str, Column]
Values = dict[tuple[What, Place], dict[int | None, float]]


def understood_columns(rows: Iterable[Row]) -> tuple[dict[str, Column], list[str]]:
    """Return the columns that mean something, and the names of the others."""
    names = dict.fromkeys(name for row in rows for name in row if name != STEP)
    columns = {name: column for name in names if (column := understand(name)) is not None}
    return columns, [name for name in names if name not in columns]


def run_from_rows(rows: Sequence[Row], columns: Named, *, format_name: str) -> Run:
    """Return the run that rows of one or more files tell of.

    Args:
        rows: each with a step.
        columns: what their names mean.
        format_name: whose logs they are.
    """
    lines: dict[int, Values] = {}
    for row in rows:
        values = lines.setdefault(int(row[STEP]), {})
        for name, value in row.items():
            if name in columns:
                column = columns[name]
                values.setdefault((column.what, column.place), {})[column.index] = value + column.added
    numbered = _Numbering(lines.values())
    made = [(_step(step, values, numbered), _evaluation(step, values, numbered)) for step, values in lines.items()]
    steps = sorted((line for line, _ in made if line is not None), key=lambda line: line.step)
    evaluations = sorted((line for _, line in made if line is not None), key=lambda line: line.step)
    facts = Facts(format=format_name, block_size=numbered.block_size)
    return Run(tuple(steps), tuple(evaluations), facts)


def sentences(file: str, rows: Sequence[Row], columns: Named, others: Sequence[str]) -> list[str]:
    """Say what was understood of a file and what was not."""
    if not columns:
        return [f"{file}: no number understood."]
    taken: dict[str, list[str]] = {}
    for name, column in columns.items():
        taken.setdefault(_meaning(column), []).append(name)
    parts = [f"{meaning} from {_list(names)}" for meaning, names in taken.items()]
    lines = [f"{file}: {len(rows)} lines; {'; '.join(parts)}."]
    if others:
        lines.append(f"{file}: not understood, passed over: {_list(others)}.")
    return lines


def _meaning(column: Column) -> str:
    words: dict[What, str] = {
        "slot": "accuracy by slot",
        "length": "right words in a row + 1",
        "tau": "acceptance length",
        "rate": "position rates",
    }
    where = {"train": "training ", "held-out": "held-out "}.get(column.place, "")
    return f"{where}{words.get(column.what, column.what)}"


def _list(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


class _Numbering:
    """How a log counts: slots from 1, or from 0, a lone 0 being the mean of all (ModelOpt); shares, or percent."""

    def __init__(self, lines: Iterable[Values]) -> None:
        self._seen: dict[tuple[What, Place], set[int]] = {}
        self._largest: dict[tuple[What, Place], float] = {}
        for values in lines:
            for key, held in values.items():
                self._seen.setdefault(key, set()).update(index for index in held if index is not None)
                self._largest[key] = max(self._largest.get(key, 0.0), *held.values())

    def share(self, values: Values, what: What, place: Place) -> float | None:
        """Return the share that is logged as a whole."""
        key = (what, place)
        found = _one(values, what, place)
        if found is None and what == "accuracy" and self._seen.get(("slot", place)) == {0}:
            key = ("slot", place)
            found = values.get(key, {}).get(0)
        return None if found is None else found / self._unit(key)

    def slots(self, values: Values, what: What, place: Place) -> Slots:
        """Return the shares in the order of their slots, if there are any."""
        held = values.get((what, place), {})
        found = {index: value for index, value in held.items() if index is not None}
        if not found or (what == "slot" and self._seen[what, place] == {0}):
            return ()
        if not all(map(math.isfinite, found.values())):
            return ()
        return tuple(found[index] / self._unit((what, place)) for index in sorted(found))

    @property
    def block_size(self) -> int | None:
        """Slots seen, and the anchor's."""
        most = max((len(seen) for seen in self._seen.values()), default=0)
        return most + 1 if most > 1 else None

    def _unit(self, key: tuple[What, Place]) -> float:
        return 100.0 if self._largest[key] > PERCENT else 1.0


def _step(step: int, values: Values, numbering: _Numbering) -> Step | None:
    line = Step(
        step=step,
        tokens=_one(values, "tokens", "any"),
        epoch=_one(values, "epoch", "any"),
        loss=_one(values, "loss", "train"),
        accuracy=numbering.share(values, "accuracy", "train"),
        slots=numbering.slots(values, "slot", "train"),
        length=_one(values, "length", "train"),
        learning_rate=_one(values, "learning rate", "any"),
        grad_norm=_one(values, "grad norm", "any"),
    )
    told = (line.loss, line.accuracy, line.length)
    return line if line.slots or any(value is not None for value in told) else None


def _evaluation(step: int, values: Values, numbering: _Numbering) -> Evaluation | None:
    prompts = finite(_one(values, "prompts", "engine"))
    line = Evaluation(
        step=step,
        tokens=_one(values, "tokens", "any"),
        tau=finite(_one(values, "tau", "engine")),
        low=finite(_one(values, "low", "engine")),
        high=finite(_one(values, "high", "engine")),
        rates=numbering.slots(values, "rate", "engine"),
        loss=finite(_one(values, "loss", "held-out")),
        accuracy=finite(numbering.share(values, "accuracy", "held-out")),
        slots=numbering.slots(values, "slot", "held-out"),
        length=finite(_one(values, "length", "held-out")),
        prompts=None if prompts is None else int(prompts),
    )
    told: tuple[Any, ...] = (line.tau, line.loss, line.accuracy, line.length)
    return line if line.rates or line.slots or any(value is not None for value in told) else None


def _one(values: Values, what: What, place: Place) -> float | None:
    return values.get((what, place), {}).get(None)
