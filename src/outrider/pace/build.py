"""A target with random weights, and each method's device form over caches that hold a context of random numbers."""

from dataclasses import dataclass, field

import torch

from outrider.drafters.blocks import Blocks
from outrider.drafters.heads import Heads
from outrider.drafters.options import DraftOptions
from outrider.drafters.rounds import BlockRounds, MTPRounds, PlainRounds
from outrider.drafters.setting import Setting
from outrider.engine.cache import Cache
from outrider.engine.graphs import GraphedRounds
from outrider.engine.rounds import DeviceRounds, Proposer
from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.models.dflash.network import DFlash
from outrider.models.mtp import MTP
from outrider.models.tiny import dummy_values
from outrider.pace.methods import Method
from outrider.pace.shapes import Shapes


@dataclass
class Models:
    """Networks of one shape, each made when first wanted.

    Attributes:
        shapes: of all of them.
        dtype: of weights.
        device: where they run.
    """

    shapes: Shapes
    dtype: torch.dtype
    device: torch.device
    target: Decoder = field(init=False)
    _heads: MTP | None = None
    _network: DFlash | None = None

    def __post_init__(self) -> None:
        config = self.shapes.target
        read = dummy_values(config.tensor_shapes(), self.device)
        self.target = Decoder(config, read, dtype=self.dtype, device=self.device)

    def heads(self) -> MTP:
        """Multi-token prediction heads.

        Raises:
            UsageError: the shapes have none.
        """
        if not self.shapes.target.mtp_layers:
            raise UsageError(f"Shapes {self.shapes.name!r} have no multi-token prediction heads; leave mtp out.")
        if self._heads is None:
            shapes = self.shapes.target.mtp_tensor_shapes()
            self._heads = MTP(dummy_values(shapes, self.device), self.target)
        return self._heads

    def network(self) -> DFlash:
        """A DFlash drafter.

        Raises:
            UsageError: the shapes have none.
        """
        if self.shapes.drafter is None:
            raise UsageError(f"Shapes {self.shapes.name!r} have no DFlash drafter; leave dflash and ddtree out.")
        if self._network is None:
            read = dummy_values(self.shapes.drafter.tensor_shapes(), self.device)
            self._network = DFlash(self.shapes.drafter, read, self.target)
        return self._network


def rounds_of(models: Models, method: Method, *, context: int, batch: int, spare: int) -> GraphedRounds:
    """Rounds that go on from a context.

    Args:
        models: to run.
        method: how to draft.
        context: committed tokens of each row, whose keys and states are random.
        batch: rows.
        spare: rounds that will be run.
    """
    rows, room = slice(0, batch), context + (spare + 2) * method.nodes
    caches, proposer = _proposer(models, method, rows, room)
    cache = models.target.new_cache(slots=batch, max_len=room)
    for one in (cache, *caches):
        one.fill_randomly()
    rounds = DeviceRounds(models.target, cache, proposer, rows, models.device, idle=context)
    for row in range(batch):
        rounds.begin(row, anchor=1 + row, length=context)
    return GraphedRounds(rounds)


def _proposer(models: Models, method: Method, rows: slice, room: int) -> tuple[list[Cache], Proposer]:
    """A method's device form, and the caches that it brings."""
    if method.name == "plain":
        return [], PlainRounds()
    setting = Setting(rows.stop, room, options=DraftOptions())
    if method.name == "mtp":
        heads = Heads(models.heads(), setting, method.size)
        heads.last_SH.normal_()
        return [heads.cache], MTPRounds(heads, rows, method.size)
    blocks = Blocks(models.network(), setting)
    most = models.network().config.max_tokens
    if method.name == "dflash" and method.size > most:
        raise UsageError(f"Method {method}: a block of this drafter gives at most {most} guesses.")
    chain = method.name == "dflash"
    proposer = BlockRounds(blocks, rows, tokens=method.size if chain else None, width=None if chain else method.nodes)
    return [blocks.cache], proposer
