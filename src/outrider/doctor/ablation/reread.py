"""A drafter that hardly drafts as its files say, read anew by experiment: what had to change, point by point."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from outrider.doctor.ablation.fault import Fault, Misread
from outrider.doctor.ablation.inject import Pair
from outrider.doctor.ablation.run import measure
from outrider.doctor.ablation.table import Entry
from outrider.doctor.verdict import Cause
from outrider.models.dflash.config import DFlashConfig
from outrider.repair.masks import Pieces
from outrider.repair.opening import Unsure
from outrider.repair.run import repair
from outrider.replay import Recording

HOW = "the drafter read as outrider repair finds it"


def reread(
    drafter: Unsure,
    pair: Pair,
    tokenizer: Pieces,
    recording: Recording,
    *,
    told: Callable[[str], None] = lambda _line: None,
) -> tuple[Entry, ...]:
    """Search the reading under which the drafter guesses best; return each change alone and all together.

    Args:
        drafter: its files.
        pair: the same as its files say.
        tokenizer: the target's.
        recording: texts of the target.
        told: is told what is being done.

    Raises:
        CheckpointError: the tensors are no drafter's for this target.
    """
    found = repair(drafter, pair.target, tokenizer, recording, told=told).config
    return tuple(Entry(fault, measure(fault, pair, recording, told)) for fault in changes(pair.config, found))


def changes(given: DFlashConfig, found: DFlashConfig) -> Iterator[Fault]:
    """Yield what differs as readings of their own, then all of it under the cause that is first in weight."""
    parts = list(_parts(given, found))
    for cause, told, misread in parts:
        yield Fault(name=told, strength="", cause=cause, how=HOW, misread=misread)
    if len(parts) > 1:
        yield Fault(
            name=" and ".join(told for _, told, _ in parts), strength="", cause=parts[0][0], how=HOW,
            misread=lambda config: replace(
                found, block_size=config.block_size, anchor_predicts=config.anchor_predicts
            ),
        )  # fmt: skip


def _parts(given: DFlashConfig, found: DFlashConfig) -> Iterator[tuple[Cause, str, Misread]]:
    if given.taps != found.taps:
        moved = {new - old for old, new in zip(given.taps, found.taps, strict=True)}
        cause: Cause = "layer_id_offset" if len(moved) == 1 else "wrong_layer_ids"
        yield cause, f"taps {', '.join(map(str, found.taps))}", lambda config: replace(config, taps=found.taps)
    if given.mask_token != found.mask_token:
        yield (
            "mask_token",
            f"mask token {found.mask_token}",
            lambda config: replace(config, mask_token=found.mask_token),
        )
    if [mask.window for mask in given.layers] != [mask.window for mask in found.layers]:
        yield "swa_ignored", f"windows {_windows(found)}", lambda config: _layers(config, found, window=True)
    if [mask.causal for mask in given.layers] != [mask.causal for mask in found.layers]:
        yield "causal_flag", "other causality", lambda config: _layers(config, found, window=False)
    if given.rope != found.rope:
        yield "position_or_rope", "other rotary settings", lambda config: replace(config, rope=found.rope)


def _layers(config: DFlashConfig, found: DFlashConfig, *, window: bool) -> DFlashConfig:
    pairs = zip(config.layers, found.layers, strict=True)
    layers = tuple(replace(old, window=new.window) if window else replace(old, causal=new.causal) for old, new in pairs)
    return replace(config, layers=layers)


def _windows(config: DFlashConfig) -> str:
    sizes = dict.fromkeys("none" if mask.window is None else str(mask.window) for mask in config.layers)
    return " and ".join(sizes)
