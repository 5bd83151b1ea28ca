"""A tiny target of the made-up language of ``dflash/pair.py``, texts of its own, and runs of the trainer on them."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from dflash.pair import DRAFTER, LENGTH, OPENING, TARGET, greedy_texts, train_target
from torch import Tensor
from train.rows import MemorySamples

from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig
from outrider.train.distributed import Group
from outrider.train.documents import Samples, split
from outrider.train.first_weights import fresh_weights
from outrider.train.lesson import Lesson
from outrider.train.loop import Ended, Trainer
from outrider.train.network import Tables
from outrider.train.options import TrainOptions
from outrider.train.task import Task

TEXTS = 192
OPTIONS: dict[str, Any] = {
    "steps": 80,
    "lr": 0.02,
    "rows": 4,
    "row_length": 2 * LENGTH,
    "anchors": 16,
    "gamma": 4.0,
    "ema": 0.9,
    "held_out": 0.2,
    "evaluate_every": 40,
    "evaluate_prompts": 16,
    "evaluate_tokens": 32,
    "checkpoint_every": 40,
    "log_every": 10,
}


@dataclass(frozen=True)
class Toy:
    """A target, its tensors, and texts it went on with greedily."""

    target: Decoder
    tensors: dict[str, Tensor]
    samples: Samples


@cache
def toy() -> Toy:
    generator = torch.Generator().manual_seed(0)
    tensors = train_target(generator)
    texts = greedy_texts(tensors, generator, TEXTS)[0].tolist()
    target = Decoder(TARGET, tensors.__getitem__, dtype=torch.float32, device=torch.device("cpu"))
    return Toy(target, tensors, MemorySamples(texts, [OPENING] * TEXTS))


def task_of(
    folder: Path,
    *,
    config: DFlashConfig = DRAFTER,
    lesson: Lesson | None = None,
    samples: Samples | None = None,
    **options: Any,
) -> Task:
    made = toy()
    settings = TrainOptions(**{key: value for key, value in (OPTIONS | options).items() if value is not None})
    return Task(
        target=made.target,
        tables=Tables(made.tensors["model.embed_tokens.weight"], made.tensors["lm_head.weight"]),
        stop_ids=frozenset(),
        split=split(samples or made.samples, share=settings.held_out, row_length=settings.row_length, where="the data"),
        config=config,
        options=settings,
        start=fresh_weights(config, settings.seed),
        folder=folder,
        lesson=lesson or Lesson.served(config),
    )


def train(folder: Path, *, resume: bool = False, minutes: float | None = None, told=None, **changes: Any) -> Ended:
    trainer = Trainer(task_of(folder, **changes), Group(), (told if told is not None else []).append)
    return trainer.run(resume=resume, minutes=minutes)


def lines_of(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line.get("kind") == kind]
