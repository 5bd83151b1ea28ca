"""Our own ``metrics.jsonl``: a header, then a line every few steps and one for each evaluation.

A last line that was cut off by a crash is left out. Unknown keys and kinds of lines are passed over: later versions
add some.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outrider.errors import UsageError
from outrider.train.report.run import Evaluation, Facts, Run, Slots, Step, finite, mean

KIND = "outrider-train"
FORMAT = 1
NAME = "metrics.jsonl"
AS_TRAINED, SERVED = "as_trained", "served"  # probes


def is_own(path: Path) -> bool:
    """Say whether a file begins with our header."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return f'"{KIND}"' in file.readline(1 << 20)
    except OSError:
        return False


def read_own(path: Path) -> Run:
    """Return the run.

    Raises:
        UsageError: the file cannot be read, is damaged, or of a later format.
    """
    header, *lines = _lines(path)
    if header.get("format") != FORMAT:
        raise UsageError(
            f"{path} has format {header.get('format')!r}; {FORMAT} is read: use the version that wrote it."
        )
    steps = [_step(line) for line in lines if line.get("kind") == "step"]
    evaluations = [_evaluation(line) for line in lines if line.get("kind") == "evaluation"]
    understood = (
        f"{path.name}: a run of outrider train; {len(steps)} lines of training, {len(evaluations)} evaluations."
    )
    return Run(tuple(steps), tuple(evaluations), _facts(header), (str(path),), (understood,))


def read_header(path: Path) -> Mapping[str, Any]:
    """Return the first line.

    Raises:
        UsageError: the file cannot be read or is damaged.
    """
    return _lines(path)[0]


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    lines: list[dict[str, Any]] = []
    for number, text in enumerate(texts, start=1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            if number == len(texts) and number > 1:
                break
            raise UsageError(f"{path} is damaged in line {number}: {error.msg}; take the line out.") from error
        if not isinstance(line, dict):
            raise UsageError(f"{path} is damaged in line {number}: expected an object, found {type(line).__name__}.")
        lines.append(line)
    if not lines:
        raise UsageError(f"{path} is empty: training wrote nothing yet.")
    return lines


def _facts(header: Mapping[str, Any]) -> Facts:
    """Find what a header knows, wherever in it that stands."""
    flat = _flat(header)
    return Facts(
        format="outrider",
        target=_text(flat, "target"),
        block_size=_whole(flat, "block_size"),
        vocab_size=_whole(flat, "vocab_size"),
        loss="distilled" if _number(flat.get("distillation")) else _text(flat, "loss"),
        epoch_tokens=_number(flat.get("response_tokens")),
        planned_steps=_whole(flat, "steps"),
    )


def _flat(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of nested objects beside each other; outer ones count first."""
    flat: dict[str, Any] = {}
    for value in held.values():
        if isinstance(value, dict):
            flat = _flat(value) | flat
    return flat | {key: value for key, value in held.items() if not isinstance(value, dict)}


def _step(line: Mapping[str, Any]) -> Step:
    slots = _slots(line.get("slot_accuracy"))
    return Step(
        step=int(_number(line.get("step")) or 0),
        tokens=_number(line.get("tokens")),
        epoch=_number(line.get("epoch")),
        loss=_number(line.get("loss")),
        accuracy=mean(slots) if slots else None,
        slots=slots,
        learning_rate=_number(line.get("lr")),
        grad_norm=_number(line.get("grad_norm")),
        phases=_slots(line.get("anchor_phases")),
        starved=_number(line.get("starved")),
    )


def _evaluation(line: Mapping[str, Any]) -> Evaluation:
    slots, probes = _slots(line.get("marginal_accuracy")), _probes(line.get("probes"))
    return Evaluation(
        step=int(_number(line.get("step")) or 0),
        tokens=_number(line.get("tokens")),
        tau=finite(_number(line.get("tau"))),
        low=finite(_number(line.get("tau_low"))),
        high=finite(_number(line.get("tau_high"))),
        rates=_slots(line.get("position_rates")),
        loss=finite(_number(line.get("held_out_loss"))),
        accuracy=mean(slots) if slots else None,
        slots=slots,
        probes=probes,
        prompts=_whole(line, "prompts"),
    )


def _probes(value: Any) -> dict[str, Mapping[str, Any]]:
    """Return the probes that have a loss; without the two that the others are compared with there are none."""
    held: dict[str, Any] = value if isinstance(value, dict) else {}
    found: dict[str, Mapping[str, Any]] = {name: each for name, each in held.items() if _is_probe(each)}
    return found if {AS_TRAINED, SERVED} <= set(found) else {}


def _is_probe(value: Any) -> bool:
    return isinstance(value, dict) and finite(_number(value.get("loss"))) is not None


def _slots(value: Any) -> Slots:
    numbers = [_number(each) for each in value] if isinstance(value, list) else []
    found = tuple(each for each in map(finite, numbers) if each is not None)
    return found if len(found) == len(numbers) else ()


def _number(value: Any) -> float | None:
    if isinstance(value, str) and value.lower() in ("nan", "inf", "-inf"):  # where JSON was kept strict
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(held: Mapping[str, Any], *keys: str) -> int | None:
    numbers = (_number(held.get(key)) for key in keys)
    return next((int(number) for number in numbers if number is not None and math.isfinite(number)), None)


def _text(held: Mapping[str, Any], key: str) -> str | None:
    value = held.get(key)
    return value if isinstance(value, str) else None
