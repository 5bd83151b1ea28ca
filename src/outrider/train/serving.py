"""Acceptance as it is served: the real engine decodes held-out prompts greedily with the drafter as it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from outrider.acceptance import Acceptance
from outrider.drafters.dflash import DFlashDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.network import DFlash

SLOTS = 48  # sequences at once


@dataclass(frozen=True, slots=True)
class Table:
    """What a drafter is served at.

    Attributes:
        target: the model whose text is wanted.
        prompts: token ids.
        stop_ids: tokens that end a text.
        max_tokens: new tokens of each.
    """

    target: Decoder
    prompts: Sequence[tuple[int, ...]]
    stop_ids: frozenset[int]
    max_tokens: int


def serve(
    table: Table, config: DFlashConfig, tensors: Mapping[str, Tensor], mask_embedding: Tensor | None
) -> Acceptance:
    """Decode the prompts with chains of a whole block and return what was accepted."""
    network = DFlash(config, tensors.__getitem__, table.target, mask_embedding)
    slots = min(SLOTS, len(table.prompts))
    length = max(map(len, table.prompts)) + table.max_tokens
    drafter = DFlashDrafter.build(Setting(slots, length, network, DraftOptions(tokens=config.max_tokens)))
    engine = Engine(
        table.target, drafter, slots=slots, max_len=length, device=table.target.device, costs=Costs(learn=False)
    )
    params = SamplingParams(max_tokens=table.max_tokens)
    sequences = [engine.add(prompt, params, stop_ids=table.stop_ids) for prompt in table.prompts]
    for _event in engine.run():
        pass
    return Acceptance.from_sequences(sequence.rounds for sequence in sequences)
