"""Faults of reading: the drafter's config taken for another. Free of torch."""

from collections.abc import Iterator
from dataclasses import replace

from outrider.doctor.ablation.fault import Fault, Misread
from outrider.models.config import Rope
from outrider.models.dflash.config import DFlashConfig, LayerMask

BASES = (0.1, 10.0)  # wrong rotary bases, as factors of the right one
PUT_IN = (64, 128, 256, 512)  # texts of an ablation are too short for more
OFFSETS = (1, -1, 2)


def misreadings(config: DFlashConfig, blocks: int) -> Iterator[Fault]:
    """Yield those that change this drafter.

    Args:
        config: its own.
        blocks: of the target.
    """
    yield from _windows(config)
    yield from _causal(config)
    yield from _taps(config, blocks)
    yield from _mask_tokens(config)
    yield from _bases(config)
    yield from _blocks(config)


def _windows(config: DFlashConfig) -> Iterator[Fault]:
    if all(mask.window is None for mask in config.layers):
        for size in PUT_IN:
            how = "layers without a window take one"
            yield Fault(name="windows put in", strength=f"{size}", cause="swa_ignored", how=how, misread=_put_in(size))
        return
    how = "layers with a window take another"
    yield Fault(name="windows", strength="ignored", cause="swa_ignored", how=how, misread=_scaled_windows(None))
    for word, factor in (("halved", 0.5), ("a quarter", 0.25), ("doubled", 2.0)):
        yield Fault(name="windows", strength=word, cause="swa_ignored", how=how, misread=_scaled_windows(factor))


def _put_in(size: int) -> Misread:
    return lambda config: replace(config, layers=tuple(replace(mask, window=size) for mask in config.layers))


def _scaled_windows(factor: float | None) -> Misread:
    def scaled(mask: LayerMask) -> LayerMask:
        if mask.window is None or factor is None:
            return replace(mask, window=None)
        return replace(mask, window=max(1, round(mask.window * factor)))

    return lambda config: replace(config, layers=tuple(map(scaled, config.layers)))


def _causal(config: DFlashConfig) -> Iterator[Fault]:
    how = "slots of a block see later ones, or do not, against their training"
    for word, every in (("every layer", 1), ("every second layer", 2)):
        if every <= config.num_layers:
            yield Fault(name="causality", strength=word, cause="causal_flag", how=how, misread=_turned(every))


def _turned(every: int) -> Misread:
    def turned(config: DFlashConfig) -> DFlashConfig:
        layers = (
            mask if index % every else replace(mask, causal=not mask.causal) for index, mask in enumerate(config.layers)
        )
        return replace(config, layers=tuple(layers))

    return turned


def _taps(config: DFlashConfig, blocks: int) -> Iterator[Fault]:
    for offset in OFFSETS:
        taps = tuple(min(max(tap + offset, 0), blocks - 1) for tap in config.taps)
        how = "features come from blocks beside the right ones"
        yield Fault(
            name="taps shifted", strength=f"{offset:+d}", cause="layer_id_offset", how=how, misread=_with_taps(taps)
        )
    if len(config.taps) > 1:
        turned, swapped = config.taps[::-1], (config.taps[1], config.taps[0], *config.taps[2:])
        for word, taps in dict.fromkeys((("reversed", turned), ("first two swapped", swapped))):
            how = "features of the right blocks lie in the wrong order"
            yield Fault(name="taps permuted", strength=word, cause="wrong_layer_ids", how=how, misread=_with_taps(taps))


def _with_taps(taps: tuple[int, ...]) -> Misread:
    return lambda config: replace(config, taps=taps)


def _mask_tokens(config: DFlashConfig) -> Iterator[Fault]:
    if config.mask_token is None:
        return
    words = ("a frequent word", config.vocab_size // 10), ("a word", config.vocab_size // 2)  # merges come by frequency
    for word, token in (("another special", 0 if config.mask_token else 1), *words):
        yield Fault(
            name="mask token",
            strength=word,
            cause="mask_token",
            how="another token stands in the masked slots",
            misread=_with_mask(token),
        )


def _with_mask(token: int) -> Misread:
    return lambda config: replace(config, mask_token=token)


def _bases(config: DFlashConfig) -> Iterator[Fault]:
    for factor in BASES:
        rope = replace(config.rope, theta=config.rope.theta * factor)
        how = "positions turn by another base"
        yield Fault(
            name="rope base", strength=f"x {factor:g}", cause="position_or_rope", how=how, misread=_with_rope(rope)
        )


def _with_rope(rope: Rope) -> Misread:
    return lambda config: replace(config, rope=rope)


def _blocks(config: DFlashConfig) -> Iterator[Fault]:
    for word, size in (("half", config.block_size // 2), ("double", config.block_size * 2)):
        yield Fault(
            name="block",
            strength=word,
            cause="num_speculative_tokens",
            how=f"blocks of {size} slots instead of {config.block_size}",
            misread=_with_block(size),
        )


def _with_block(size: int) -> Misread:
    return lambda config: replace(config, block_size=size)
