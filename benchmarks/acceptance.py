"""``python -m benchmarks.acceptance MODEL DRAFTER PROMPTS``: acceptance length by category of prompts, with intervals.

Every prompt is decoded greedily in the real engine with drafts of a fixed size, several at a time: what is accepted
depends on neither. Speed is measured elsewhere (``outrider compare``), one sequence at a time.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from outrider.acceptance import Acceptance, Round
from outrider.commands.prompts_file import Row, read_rows
from outrider.drafters.options import DraftOptions
from outrider.engine.params import SamplingParams
from outrider.provenance import provenance
from outrider.runner import Runner, load

SLOTS = 8


@dataclass(frozen=True, slots=True)
class Way:
    """A drafter and how much it drafts."""

    drafter: str
    options: DraftOptions

    @classmethod
    def parse(cls, text: str) -> "Way":
        """Read ``dflash:7`` or ``ddtree:63``."""
        name, _, size = text.partition(":")
        most = int(size)
        return cls(name, DraftOptions(budget=most) if name == "ddtree" else DraftOptions(tokens=most))


def main() -> None:
    """Measure and write JSON to standard output."""
    given = _parse()
    rows = [row for kind in _by_category(read_rows(given.prompts)) for row in kind[: given.each]]
    found = {}
    for name in given.ways.split(","):
        way = Way.parse(name)
        runner = load(
            given.model, drafter=way.drafter, draft_model=given.drafter, draft=way.options, slots=SLOTS,
            dtype="float32", max_len=given.max_len,
        )  # fmt: skip
        found[name] = _table(_decode(runner, rows, given.max_tokens))
    print(json.dumps({"ways": found, "prompts": len(rows), "provenance": provenance().model_dump()}, indent=1))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("drafter")
    parser.add_argument("prompts", type=Path)
    parser.add_argument("--ways", default="dflash:7,ddtree:63", help="NAME:SIZE, ...")
    parser.add_argument("--each", type=int, help="prompts of a category")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--max-len", type=int, default=4096)
    return parser.parse_args()


def _by_category(rows: list[Row]) -> Iterator[list[Row]]:
    for _, group in groupby(sorted(rows, key=lambda row: row.category), key=lambda row: row.category):
        yield list(group)


def _decode(runner: Runner, rows: list[Row], max_tokens: int) -> list[tuple[str, tuple[Round, ...]]]:
    """Return each prompt's category and rounds."""
    params = SamplingParams(max_tokens=max_tokens)
    completions = runner.generate_many([[{"role": "user", "content": row.prompt}] for row in rows], params)
    return [(row.category, one.rounds) for row, one in zip(rows, completions, strict=True)]


def _table(decoded: list[tuple[str, tuple[Round, ...]]]) -> dict[str, Any]:
    kinds = {kind: [rounds for name, rounds in decoded if name == kind] for kind, _ in decoded}
    kinds["all"] = [rounds for _, rounds in decoded]
    return {kind: _summary(Acceptance.from_sequences(sequences)) for kind, sequences in kinds.items()}


def _summary(acceptance: Acceptance) -> dict[str, Any]:
    length = acceptance.intervals().length
    assert length is not None  # noqa: S101 -- every text has a round
    return {
        "texts": len(acceptance.sequences),
        "tau": [round(value, 3) for value in (length.value, length.low, length.high)],
        "position_rates": [round(rate, 3) for rate in acceptance.position_rates],
    }


if __name__ == "__main__":
    main()
