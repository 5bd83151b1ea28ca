"""Runs of the trained pair through engine and drafter, and networks with a fault put in on purpose."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field

import torch
from dflash.pair import BLOCK, Pair, write_texts
from engine.running import engine_of, finish
from torch import Tensor

from outrider.acceptance import Acceptance
from outrider.drafters.dflash import DFlashDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.models.dflash.network import DFlash, Draft

MOST = BLOCK - 1
MAX_LEN = 128
Prompts = list[tuple[int, ...]]


def prompts_of(count: int, *lengths: int) -> Prompts:
    """Prompts of the language, as long as told, in turn."""
    texts = write_texts(count, max(lengths), torch.Generator().manual_seed(7)).tolist()
    return [tuple(text[: lengths[index % len(lengths)]]) for index, text in enumerate(texts)]


def drafter_of(network: DFlash, *, slots: int = 1, **options) -> DFlashDrafter:
    return DFlashDrafter.build(Setting(slots, MAX_LEN, network, DraftOptions(**{"tokens": MOST} | options)))


def run(pair: Pair, network: DFlash, prompts: Prompts, *, slots: int = 8, new: int = 32) -> list[Sequence]:
    """Greedy texts of the prompts, with as many draft tokens as a block gives."""
    engine = engine_of(pair.target, drafter_of(network, slots=slots), slots=slots, max_len=MAX_LEN)
    return finish(engine, [(prompt, SamplingParams(max_tokens=new)) for prompt in prompts])


def acceptance(sequences: list[Sequence]) -> Acceptance:
    return Acceptance.from_sequences(sequence.rounds for sequence in sequences)


@dataclass
class Drafted:
    """One draft: what each row remembered, its anchor, and the logits."""

    lengths: list[int]
    anchors: list[int]
    logits_BKV: Tensor


@dataclass
class Recording:
    """A network that keeps what it drafted."""

    network: DFlash
    drafts: list[Drafted] = field(default_factory=list)

    def __getattr__(self, name: str):
        return getattr(self.network, name)

    def draft(self, anchors_B: Tensor, cache, rows: slice, lengths_B: Tensor, **host: int) -> Draft:
        draft = self.network.draft(anchors_B, cache, rows, lengths_B, **host)
        self.drafts.append(Drafted(lengths_B.tolist(), anchors_B.tolist(), draft.logits_BKV.clone()))
        return draft


@dataclass
class Edited:
    """A network that reads edited features."""

    network: DFlash
    edit: Callable[[Tensor], Tensor]

    def __getattr__(self, name: str):
        return getattr(self.network, name)

    def remember(self, features_BNF: Tensor, cache, rows: slice, lengths_B: Tensor, *, span: int) -> None:
        self.network.remember(self.edit(features_BNF), cache, rows, lengths_B, span=span)


@dataclass
class Displaced:
    """A network whose blocks are turned as if they stood elsewhere; what they see is as it should be."""

    network: DFlash
    places: int

    def __getattr__(self, name: str):
        return getattr(self.network, name)

    def draft(self, anchors_B: Tensor, cache, rows: slice, lengths_B: Tensor, **host: int) -> Draft:
        displaced = copy(self.network)
        angles = displaced._angles
        displaced._angles = lambda positions, dtype: angles(positions + self.places, dtype)
        return displaced.draft(anchors_B, cache, rows, lengths_B, **host)
