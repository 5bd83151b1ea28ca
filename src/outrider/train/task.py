"""What a run is made from, and what must be the same for it to go on. Takes no steps."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from outrider.errors import UsageError
from outrider.models.config import Rope
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.train.batches import Reader
from outrider.train.documents import Split
from outrider.train.lesson import Lesson
from outrider.train.network import Tables
from outrider.train.options import TrainOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A run.

    Attributes:
        target: the model that is drafted for, on its device.
        tables: its embedding table and head, float32 or as stored.
        stop_ids: tokens that end its texts.
        split: documents to train on and held out.
        config: the drafter, as it will be served.
        options: settings.
        start: first weights, under z-lab names.
        folder: where checkpoints and log go.
        lesson: what is taught; that which is served, but in tests.
        facts: for the log's header: names of target and data.
    """

    target: Decoder
    tables: Tables
    stop_ids: frozenset[int]
    split: Split
    config: DFlashConfig
    options: TrainOptions
    start: Mapping[str, Tensor]
    folder: Path
    lesson: Lesson
    facts: dict[str, Any] = field(default_factory=dict)

    def reader(self, world: int) -> Reader:
        """Return the reader of what is trained on, for so many processes."""
        options = self.options
        return Reader(
            self.split.train,
            rows=options.rows * options.accumulation * world,
            row_length=options.row_length,
            anchors=options.anchors,
            block_size=self.config.block_size,
            seed=options.seed,
            draw=self.lesson.draw,
        )

    def steps(self, reader: Reader) -> int:
        """Return how many steps the run has."""
        if self.options.steps is not None:
            return self.options.steps
        assert self.options.tokens is not None  # noqa: S101 -- the options see to it
        return math.ceil(self.options.tokens * reader.steps(0) / self.split.train.response_tokens)

    def identity(self, world: int) -> dict[str, Any]:
        """Return what must be the same for the run to go on."""
        return {
            "config": config_record(self.config),
            "options": self.options.lasting(),
            "data": self.split.train.fingerprint(),
            "processes": world,
        }

    def check_same(self, before: Mapping[str, Any], world: int) -> None:
        """Refuse to go on with a run that was begun otherwise.

        Raises:
            UsageError: names what differs.
        """
        now = self.identity(world)
        for part in ("config", "options"):
            for name, value in now[part].items():
                if before[part].get(name) != value:
                    raise UsageError(
                        f"{self.folder} was begun with {name}={before[part].get(name)!r}, now it is {value!r}: resume "
                        "with the same settings, or begin another run with --init and another --out."
                    )
        for part, what in (("data", "other data"), ("processes", f"{before['processes']} processes")):
            if before[part] != now[part]:
                raise UsageError(
                    f"{self.folder} was begun with {what}; resume with the same, or begin another run with --init and "
                    "another --out."
                )


def config_record(config: DFlashConfig) -> dict[str, Any]:
    """Return a config as JSON holds it."""
    record: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return record


def config_from(record: Mapping[str, Any]) -> DFlashConfig:
    """Return the config of a record of drafters that are trained here."""
    return DFlashConfig(
        **dict(record)
        | {
            "layers": tuple(LayerMask(**mask) for mask in record["layers"]),
            "taps": tuple(record["taps"]),
            "rope": Rope(**record["rope"]),
        }
    )
