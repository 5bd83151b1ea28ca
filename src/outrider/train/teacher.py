"""One batch through target, draft network and loss, under a lesson. Takes no steps and keeps no count.

Shape letters: B rows, T tokens of a row.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from outrider.models.decoder import Decoder
from outrider.train.batches import Batch
from outrider.train.features import Features, Read
from outrider.train.lesson import Lesson, make_blocks
from outrider.train.losses import Costs, Sums
from outrider.train.network import DraftNetwork, Shown
from outrider.train.options import TrainOptions
from outrider.train.scoring import Scorer
from outrider.train.visibility import visible


@dataclass(frozen=True, slots=True)
class Precision:
    """How the network computes.

    Attributes:
        dtype: of activations; weights are float32.
        flex: whether attention is a compiled kernel over block masks.
    """

    dtype: torch.dtype
    flex: bool

    @classmethod
    def of(cls, options: TrainOptions, device: torch.device, *, sinks: bool) -> "Precision":
        """Return what a run's settings mean on a device; flex attention has no sinks."""
        gpu = device.type == "cuda"
        half = gpu if options.bf16 is None else options.bf16
        flex = gpu if options.attention == "auto" else options.attention == "flex"
        return cls(torch.bfloat16 if half else torch.float32, flex and not sinks)


class Teacher:
    """Shows batches to a draft network and compares its guesses with the text.

    Args:
        target: whose features are read.
        network: what learns.
        costs: how guesses are weighed in training.
        precision: how it computes.
        rows: of a batch.
        row_length: tokens of a row.
        anchors: blocks of a row.
    """

    def __init__(
        self,
        target: Decoder,
        network: DraftNetwork,
        costs: Costs,
        precision: Precision,
        *,
        rows: int,
        row_length: int,
        anchors: int,
    ) -> None:
        self.rows, self.costs, self.network = rows, costs, network
        self.device, self._precision = target.device, precision
        self._features = Features(target, network.config.taps, rows=rows, row_length=row_length, flex=precision.flex)
        self._scorer = Scorer(network, target, most=rows * anchors)

    def nothing(self) -> Sums:
        """Return sums over no slot."""
        return Sums.nothing(self.network.config.max_tokens, self.device)

    def read(self, batch: Batch) -> Read:
        """Run the target over a batch that is on its device."""
        return self._features.read(batch)

    def teach(
        self, batch: Batch, read: Read, lesson: Lesson, *, costs: Costs | None = None, model: nn.Module | None = None
    ) -> tuple[Tensor, Sums]:
        """Return the sum of the costs of all guesses, with its gradient's graph where one is wanted, and the counts.

        Args:
            batch: on the target's device.
            read: what the target says of it.
            lesson: how blocks are made.
            costs: other than the run's.
            model: the network as several processes share it.
        """
        blocks = make_blocks(batch, lesson)
        shown = Shown(
            read.features_BTF.to(self._precision.dtype),
            blocks.ids_BAN,
            blocks.positions_BS,
            visible(blocks, lesson.layers, flex=self._precision.flex),
            batch.blocks_P,
        )
        hidden_PKH = (model or self.network)(shown)
        return self._scorer.score(hidden_PKH, blocks, read, costs or self.costs)
