"""The questions that tensors leave open, and for each the readings to try. Free of torch.

A reading is a whole config; the readings of a question differ from the one at hand in that point alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from outrider.models.config import DecoderConfig, Rope
from outrider.models.dflash.config import DFlashConfig, LayerMask

BLOCK_SIZES = (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32)
WINDOWS = (512, 1024, 2048, 4096)
THETAS = (1e4, 5e5, 1e6, 1e7)
EPSILONS = (1e-6, 1e-5)
TOP_KS = (4, 8, 16, 32, 64)
DECISIVE = 8  # first slots, by which readings of one block size are compared: acceptance ends in them


@dataclass(frozen=True, slots=True)
class Question:
    """One point that the tensors leave open.

    Attributes:
        key: its name in config.json; of lists with the place.
        value: what a reading says to it, as the file would.
        options: all readings to try in place of one; may name it too.
        default: what it is unless measured otherwise.
        whole: readings are compared by what whole blocks gain, not by the first slots.
    """

    key: str
    value: Callable[[DFlashConfig], Any]
    options: Callable[[DFlashConfig], list[DFlashConfig]]
    default: Any
    whole: bool = False

    def slots(self, readings: Iterable[DFlashConfig]) -> int | None:
        """Return by how many first slots the readings are compared; None where by all that gain."""
        return None if self.whole else min(DECISIVE, *(reading.max_tokens for reading in readings))

    def others(self, config: DFlashConfig) -> list[DFlashConfig]:
        """Return the readings that answer differently from this one, each answer once."""
        answers = {str(self.value(option)): option for option in self.options(config)}
        answers.pop(str(self.value(config)), None)
        return list(answers.values())


def questions(
    start: DFlashConfig, target: DecoderConfig, *, mask_tokens: Sequence[int], windows: Sequence[int]
) -> list[Question]:
    """Return what has to be asked of a drafter, the weightiest first.

    Args:
        start: what holds unless measured otherwise.
        target: what it drafts for.
        mask_tokens: ids that may stand in masked slots.
        windows: sizes that the texts at hand can tell from none.
    """
    asked = []
    if not start.mask_embedding:
        asked.append(_plain("mask_token_id", "mask_token", mask_tokens, start))
    asked += [
        _plain("sample_from_anchor", "anchor_predicts", (False, True), start),
        *(_causal(layer, start) for layer in range(start.num_layers)),
        *(_tap(place, target.num_layers, start) for place in range(len(start.taps))),
    ]
    if windows:
        asked.append(Question("sliding_window", _window_text, partial(_windowed, windows=windows), _window_text(start)))
    asked += [
        Question(
            "rope_parameters",
            lambda config: rope_text(config.rope),
            partial(_roped, ropes=_ropes(start, target)),
            rope_text(start.rope),
        ),
        _plain("input_embedding_scale", "embedding_scale", (1.0, start.hidden_size**0.5), start),
        _plain("rms_norm_eps", "norm_eps", EPSILONS, start),
    ]
    if start.selector is not None:
        asked.append(_top_k(start))
    # Last: while little is right, small blocks, which do little wrong, look better than they are.
    return [*asked, replace(_plain("block_size", "block_size", BLOCK_SIZES, start), whole=True)]


def _plain(key: str, field: str, values: Sequence[Any], start: DFlashConfig) -> Question:
    """A question whose answer is the value of one field."""

    def options(config: DFlashConfig) -> list[DFlashConfig]:
        return [replace(config, **{field: value}) for value in dict.fromkeys((getattr(start, field), *values))]

    return Question(key, lambda config: getattr(config, field), options, getattr(start, field))


def _top_k(start: DFlashConfig) -> Question:
    def options(config: DFlashConfig) -> list[DFlashConfig]:
        if config.selector is None:
            return [config]
        return [replace(config, selector=replace(config.selector, top_k=count)) for count in TOP_KS]

    def value(config: DFlashConfig) -> int | None:
        return None if config.selector is None else config.selector.top_k

    return Question("selector_top_k", value, options, value(start))


def _tap(place: int, blocks: int, start: DFlashConfig) -> Question:
    def value(config: DFlashConfig) -> int:
        return config.taps[place]

    def options(config: DFlashConfig) -> list[DFlashConfig]:
        return [replace(config, taps=with_tap(config.taps, place, block)) for block in range(blocks)]

    return Question(f"target_layer_ids[{place}]", value, options, value(start))


def with_tap(taps: tuple[int, ...], place: int, block: int) -> tuple[int, ...]:
    """Put a block at a place of the list; where the list has it elsewhere, the two places change."""
    changed = list(taps)
    if block in taps:
        changed[taps.index(block)] = taps[place]
    changed[place] = block
    return tuple(changed)


def _causal(layer: int, start: DFlashConfig) -> Question:
    def value(config: DFlashConfig) -> bool:
        return config.layers[layer].causal

    def options(config: DFlashConfig) -> list[DFlashConfig]:
        return [with_causal(config, layer, causal=causal) for causal in (False, True)]

    return Question(f"causal[{layer}]", value, options, value(start))


def with_causal(config: DFlashConfig, layer: int, *, causal: bool) -> DFlashConfig:
    """Change one layer's causality, and keep to what a config can say: see ``settled``."""
    layers = list(config.layers)
    layers[layer] = replace(layers[layer], causal=causal)
    return replace(config, layers=settled(layers))


def settled(layers: Sequence[LayerMask]) -> tuple[LayerMask, ...]:
    """Give windows to the causal layers alone where both kinds are there: the config can say no other mixture."""
    window = window_of(layers)
    if window is None or len({mask.causal for mask in layers}) == 1:
        return tuple(layers)
    return tuple(LayerMask(window if mask.causal else None, mask.causal) for mask in layers)


def window_of(layers: Sequence[LayerMask]) -> int | None:
    """The largest window of any layer; None where no layer has one."""
    return max((mask.window for mask in layers if mask.window is not None), default=None)


def _window_text(config: DFlashConfig) -> str:
    """Say the window and which layers have it, as in "2048: SSSSF"."""
    window = window_of(config.layers)
    if window is None:
        return "none"
    return f"{window}: {''.join('F' if mask.window is None else 'S' for mask in config.layers)}"


def _windowed(config: DFlashConfig, *, windows: Sequence[int]) -> list[DFlashConfig]:
    """No window, and each size for the causal layers, or for all, all but the last, and one layer more or less."""
    count = config.num_layers
    causal = [mask.causal for mask in config.layers]
    if len(set(causal)) > 1:
        choices = [causal]
    else:
        now = [mask.window is not None for mask in config.layers]
        toggled = [[has != (layer == place) for layer, has in enumerate(now)] for place in range(count)]
        choices = [[True] * count, [True] * (count - 1) + [False], *toggled]
    none = replace(config, layers=_with_windows(config, None, [False] * count))
    return [none, *(replace(config, layers=_with_windows(config, size, some)) for size in windows for some in choices)]


def _with_windows(config: DFlashConfig, window: int | None, which: Sequence[bool]) -> tuple[LayerMask, ...]:
    return tuple(
        LayerMask(window if has else None, mask.causal) for mask, has in zip(config.layers, which, strict=True)
    )


def _ropes(start: DFlashConfig, target: DecoderConfig) -> list[Rope]:
    return [start.rope, target.rope, *(Rope(theta) for theta in (target.rope.theta, *THETAS))]


def _roped(config: DFlashConfig, *, ropes: Sequence[Rope]) -> list[DFlashConfig]:
    return [replace(config, rope=rope) for rope in ropes]


def rope_text(rope: Rope) -> str:
    """Say the base and how it is stretched."""
    options = ", ".join(f"{key} {value:g}" for key, value in rope.options.items() if isinstance(value, int | float))
    return f"{rope.theta:g}" + ("" if rope.kind == "default" else f" {rope.kind} ({options})")
