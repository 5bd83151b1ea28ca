"""``python -m benchmarks.gate``: what a round costs and brings, by batch and temperature: plain, chain and tree.

The shipped pair decodes the same sixteen prompts in batches of 1, 4 and 16; texts end where they end, so
the last rounds of a batch are smaller. Each cell is one run; runs of a row follow each other.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.acceptance import Acceptance
from outrider.commands.prompts_file import read_rows
from outrider.drafters.options import DraftOptions
from outrider.engine.params import SamplingParams
from outrider.provenance import provenance
from outrider.runner import Loaded, Runner, load

MODEL, DRAFTER = "smollm2-135m", "smollm2-135m-dflash"
PROMPTS = Path(__file__).with_name("prompts.jsonl")
COUNT, MAX_TOKENS, MAX_LEN = 16, 64, 1024
WAYS = {
    "none": ("none", DraftOptions()),
    "dflash, as many as pay": ("dflash", DraftOptions()),
    "dflash, 7": ("dflash", DraftOptions(tokens=7)),
    "ddtree, as many as pay": ("ddtree", DraftOptions()),
    "ddtree, 15": ("ddtree", DraftOptions(budget=15)),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One run.

    Attributes:
        rounds: passes of the engine, each for all rows that still run.
    """

    batch: int
    temperature: float
    way: str
    tokens: int
    rounds: int
    seconds: float
    tau: float | None

    def record(self) -> dict[str, Any]:
        """Return what a table shows."""
        return {
            "batch": self.batch,
            "temperature": self.temperature,
            "way": self.way,
            "tau": self.tau and round(self.tau, 2),
            "ms_a_round": round(1000 * self.seconds / self.rounds, 1),
            "tokens_per_second": round(self.tokens / self.seconds, 1),
        }


def main() -> None:
    """Measure and write JSON to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", default="1,4,16")
    given = parser.parse_args()
    loaded = load(MODEL, draft_model=DRAFTER, dtype="float32", max_len=MAX_LEN).loaded
    cells = [
        _run(loaded, batch, temperature, way).record()
        for batch in map(int, given.batches.split(","))
        for temperature in (0.0, 1.0)
        for way in WAYS
    ]
    print(json.dumps({"cells": cells, "provenance": provenance().model_dump()}, indent=1))


def _run(loaded: Loaded, batch: int, temperature: float, way: str) -> Cell:
    drafter, options = WAYS[way]
    own = Loaded(
        loaded.checkpoint, loaded.target, loaded.tokenizer, loaded.network, loaded.draft_model, options
    )  # fmt: skip
    runner = Runner(own, drafter, slots=batch, max_len=MAX_LEN)
    rows = (read_rows(PROMPTS) * 2)[:COUNT]
    prompts = [[{"role": "user", "content": row.prompt}] for row in rows]
    runner.generate(prompts[0], SamplingParams(max_tokens=8))  # what passes cost is learnt before the clock runs
    begun = time.perf_counter()
    texts = runner.generate_many(prompts, SamplingParams(max_tokens=MAX_TOKENS, temperature=temperature, seed=1))
    seconds = time.perf_counter() - begun
    acceptance = Acceptance.from_sequences(text.rounds for text in texts)
    rounds = max(1, round(acceptance.num_rounds / batch))
    tokens = sum(len(text.pieces) for text in texts)
    return Cell(batch, temperature, way, tokens, rounds, seconds, acceptance.length)


if __name__ == "__main__":
    main()
