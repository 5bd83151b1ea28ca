"""Ways in which training goes wrong, put in on purpose, and the logs that such runs leave.

``PYTHONPATH=src:tests python -m train.faults`` trains the tiny pair once with each and writes ``logs/*.jsonl``, which
the tests of the report read.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from dflash.pair import DRAFTER
from train.toy import train

from outrider.models.dflash.config import LayerMask
from outrider.train.lesson import Lesson

LOGS = Path(__file__).parent / "logs"
SERVED = Lesson.served(DRAFTER)


def on_a_grid(offsets_P, count, uniforms_A):
    """The same anchors in every epoch: a document's first one, then one a block."""
    return np.flatnonzero(offsets_P % DRAFTER.block_size == 0)[:count]


LESSONS = {
    "healthy": SERVED,
    "f1": replace(SERVED, label_shift=1),
    "f2": replace(SERVED, context_end=1),
    "f3": replace(SERVED, layers=tuple(LayerMask(mask.window, causal=True) for mask in SERVED.layers)),
    "f8": replace(SERVED, mask_token=0),
    "f11": replace(SERVED, draw=on_a_grid),
}


def record(name: str) -> Path:
    """Train with one fault and keep the log, shortened to four digits, without where it was made."""
    with TemporaryDirectory() as folder:
        train(Path(folder), lesson=LESSONS[name], log_every=5, evaluate_every=20)
        lines = [json.loads(text) for text in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    del lines[0]["provenance"]
    path = LOGS / f"{name}.jsonl"
    LOGS.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(_short(line)) + "\n" for line in lines))
    return path


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner) for inner in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    torch.set_num_threads(1)
    for wanted in sys.argv[1:] or LESSONS:
        print(record(wanted))  # noqa: T201
