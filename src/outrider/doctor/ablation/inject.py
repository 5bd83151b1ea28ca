"""Puts a fault into a pair: into the network, into the recorded features, into the walk.

Shape letters: L blocks of the target, T tokens, H its width, A anchors, K slots that predict, V words.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from outrider.doctor.ablation.fault import Damage, Fault
from outrider.doctor.ablation.network import FaultyDFlash
from outrider.doctor.ablation.rounding import rounded
from outrider.doctor.ablation.weights import damaged_reader
from outrider.engine.tree import DraftTree
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig
from outrider.models.layers import ReadTensor
from outrider.replay import RecordedText, Recording, Replay, ReplayedText, replay


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and a drafter's tensors, from which faulty ones can be built.

    Attributes:
        read: gives a tensor of the drafter by its z-lab name.
        mask_embedding: as in ``DFlash``.
    """

    target: Decoder
    config: DFlashConfig
    read: ReadTensor
    mask_embedding: Tensor | None = None


def replay_with(fault: Fault, pair: Pair, recording: Recording) -> Replay:
    """Replay the texts with the fault put in."""
    damage = fault.damage
    texts = tuple(_damaged_text(text, damage, pair.config) for text in recording.texts)
    found = replay(_network(fault, pair), Recording(texts), walk_only=True)
    if not damage.temperature:
        return found
    generator = torch.Generator().manual_seed(0)
    pairs = zip(found.texts, recording.texts, strict=True)
    return Replay(tuple(_sampled(one, text, pair.target, damage.temperature, generator) for one, text in pairs))


def _network(fault: Fault, pair: Pair) -> FaultyDFlash:
    damage, config = fault.damage, fault.misread(pair.config)
    config = replace(
        config,
        own_head=config.own_head or damage.head != "shared",
        own_embedding=config.own_embedding or damage.embedding != "shared",
    )
    head = _head(pair.target) if damage.head == "rolled" else None
    read = damaged_reader(pair.read, damage, config, head)
    return FaultyDFlash(config, read, pair.target, pair.mask_embedding, damage)


def _head(target: Decoder) -> Tensor:
    """The target's head, [V, H], read off what it makes of unit vectors."""
    units = torch.eye(target.config.hidden_size, dtype=target.activations, device=target.device)
    return target.logits(units).T.contiguous().cpu()


def _damaged_text(text: RecordedText, damage: Damage, config: DFlashConfig) -> RecordedText:
    blocks_LTH = text.blocks_LTH
    if damage.feature_shift:
        blocks_LTH = blocks_LTH.roll(damage.feature_shift, 1)
    if damage.feature_format is not None:
        blocks_LTH = rounded(blocks_LTH, damage.feature_format)
    if damage.feature_noise:
        noise = torch.randn(blocks_LTH.shape, generator=torch.Generator().manual_seed(len(text.tokens_T)))
        spread_L11 = blocks_LTH.float().flatten(1).std(1)[:, None, None]
        blocks_LTH = blocks_LTH + damage.feature_noise * spread_L11 * noise.to(blocks_LTH)
    if damage.dead_tap is not None:
        blocks_LTH = blocks_LTH.clone()
        blocks_LTH[config.taps[damage.dead_tap]] = 0
    return replace(text, blocks_LTH=blocks_LTH)


@torch.inference_mode()
def _sampled(
    found: ReplayedText, text: RecordedText, target: Decoder, temperature: float, generator: torch.Generator
) -> ReplayedText:
    """Let the target draw each word of the text: a guess holds where it is right and the draw gives that word."""
    length = len(text.tokens_T)
    tree, start = DraftTree.chain(text.tokens_T[None, :-1]), torch.tensor([0], device=target.device)
    out = target.forward(tree, target.new_cache(slots=1, max_len=length), slice(0, 1), start, span=length - 1)
    laws_TV = (target.logits(out.hidden_BNH[0]) / temperature).softmax(-1)
    drawn_T = torch.rand(length - 1, generator=generator) < laws_TV.gather(1, text.tokens_T[1:, None])[:, 0].cpu()
    places_AK = found.positions_A[:, None] + np.arange(found.right_AK.shape[1])
    held_AK = drawn_T.numpy()[places_AK.clip(max=length - 2)]
    # ``accepted_A`` is remembered by the old one; a new one counts anew.
    return replace(found, right_AK=found.right_AK & held_AK)
