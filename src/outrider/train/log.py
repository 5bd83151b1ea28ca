"""The log of a run: a header line, then a line every few steps and one a measurement, as JSON. Free of torch.

It is only ever added to. A run that goes on from a checkpoint takes out what came after it.
"""

import json
from pathlib import Path
from typing import Any

from outrider.errors import UsageError

NAME = "metrics.jsonl"
FORMAT, KIND = 1, "outrider-train"
Line = dict[str, Any]


class MetricsLog:
    """Adds lines to ``metrics.jsonl``.

    Args:
        folder: of the run.
        header: what the run is; kept as it was where the run goes on.
        step: where the run stands; lines of later steps are taken out.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, folder: Path, header: Line, *, step: int) -> None:
        self._path = folder / NAME
        lines = read_lines(self._path) if step else []
        kept = [line for line in lines[1:] if line.get("step", 0) <= step]
        first = lines[0] if lines else {"format": FORMAT, "kind": KIND} | header
        temporary = self._path.with_name(self._path.name + ".unfinished")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text("".join(map(_text, [first, *kept])), encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            raise self._unwritten(error) from error

    def add(self, line: Line) -> None:
        """Add a line.

        Raises:
            UsageError: there is no room.
        """
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_text(line))
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> UsageError:
        return UsageError(
            f"Cannot write {self._path}: {error.strerror or error}. Make room, or choose another folder with --out; "
            "checkpoints written before are good."
        )


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a log that are whole; a run that was killed may leave half a line at the end.

    Raises:
        UsageError: it cannot be read, or a line before the last is damaged.
    """
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
    lines: list[Line] = []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(json.loads(text))
        except ValueError:
            if number == len(texts):
                break
            raise UsageError(f"{path} is damaged: line {number} is not JSON.") from None
    return lines


def _text(line: Line) -> str:
    return json.dumps(line, allow_nan=False) + "\n"
