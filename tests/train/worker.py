"""One process of a run on a random tiny target: started by torchrun, or alone.

``python -m train.worker FOLDER ROWS ACCUMULATION``
"""

import sys
from pathlib import Path

import torch
from dflash.pair import OPENING, TARGET, write_texts
from train import toy
from train.rows import MemorySamples

from outrider.models.decoder import Decoder
from outrider.models.tiny import random_tensors
from outrider.train.distributed import joined
from outrider.train.loop import Ended, Trainer

STEPS = 3


def random_toy() -> toy.Toy:
    made = random_tensors(TARGET)
    tensors = {name: made(name) for name in TARGET.tensor_shapes()}
    texts = write_texts(48, 40, torch.Generator().manual_seed(0)).tolist()
    target = Decoder(TARGET, tensors.__getitem__, dtype=torch.float32, device=torch.device("cpu"))
    return toy.Toy(target, tensors, MemorySamples(texts, [OPENING] * len(texts)))


def run(folder: Path, *, rows: int, accumulation: int) -> Ended:
    toy.toy = random_toy
    settings = {"steps": STEPS, "log_every": 1, "evaluate_every": 2, "checkpoint_every": STEPS, "anchors": 4,
                "evaluate_prompts": 2, "evaluate_tokens": 4}  # fmt: skip
    with joined(torch.device("cpu")) as group:
        task = toy.task_of(folder, rows=rows, accumulation=accumulation, **settings)
        return Trainer(task, group, lambda line: print(line, flush=True)).run(resume=True)  # noqa: T201


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(Path(sys.argv[1]), rows=int(sys.argv[2]), accumulation=int(sys.argv[3]))
