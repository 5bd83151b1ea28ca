"""Which layers slide, how far, and which see only what is behind them in the block.

A sliding layer is causal in the block and a full one is not, unless the config says otherwise for all of them
(z-lab, dflash 0.1.0).
"""

from outrider.models.dflash.config import LayerMask
from outrider.models.dflash.formats.keys import Keys, is_integer, shown

FULL, SLIDING = "full_attention", "sliding_attention"
FIRST_SLIDING = 28  # Transformers' default of max_window_layers
KINDS = ("layer_types", "sliding_window", "use_sliding_window", "max_window_layers")
UNDERSTOOD = (*KINDS, "is_causal", "causal", "use_swa", "swa_window_size")


def zlab_masks(keys: Keys, num_layers: int) -> tuple[LayerMask, ...]:
    """Return each layer's mask by the rules of the z-lab format and its extensions."""
    everywhere = keys.flag("use_swa")
    sliding = _overridden(keys, _sliding(keys, num_layers), everywhere)
    window = _zlab_window(keys, sliding)
    if not everywhere:
        _check_switch(keys, sliding)
    causal = _explicit_causality(keys)
    behind = not everywhere or keys.get("layer_types") is not None  # use_swa alone slides both ways (vLLM 0.25)
    return tuple(LayerMask(window if slides else None, _causal(causal, slides and behind)) for slides in sliding)


def speculators_masks(keys: Keys, num_layers: int, *, around: bool) -> tuple[LayerMask, ...]:
    """Return each layer's mask by the rules of the speculators format.

    Args:
        keys: of ``transformer_layer_config``.
        num_layers: of the drafter.
        around: whether sliding layers see the whole block.
    """
    sliding = _sliding(keys, num_layers)
    window = _size(keys, sliding, keys.optional("sliding_window"))
    _check_switch(keys, sliding)
    if any(sliding) and window is not None:
        keys.notes.append(
            f"Trained with windows that start {window} tokens before the anchor for every slot of a block; here, as in "
            "the engines, a window ends at its slot."
        )
    return tuple(LayerMask(window if slides else None, slides and not around) for slides in sliding)


def _causal(explicit: bool | None, default: bool) -> bool:  # noqa: FBT001 -- two values of one meaning
    return default if explicit is None else explicit


def _sliding(keys: Keys, num_layers: int) -> tuple[bool, ...]:
    kinds = keys.get("layer_types")
    if kinds is None:
        first = keys.optional("max_window_layers", least=0)
        first = FIRST_SLIDING if first is None else first
        slides = keys.flag("use_sliding_window") is True and keys.get("sliding_window") is not None
        return tuple(slides and layer >= first for layer in range(num_layers))
    if not isinstance(kinds, list) or len(kinds) != num_layers:
        found = f"{len(kinds)}" if isinstance(kinds, list) else shown(kinds)
        keys.say(
            "layer_types",
            f"expected one entry for each of num_hidden_layers={num_layers} layers, found {found}; correct either.",
            fatal=True,
        )
        return (False,) * num_layers
    unknown = [kind for kind in kinds if kind not in (FULL, SLIDING)]
    if unknown:
        keys.say(
            "layer_types", f"expected {FULL} or {SLIDING}, found {shown(unknown[0])}, which is not run.", fatal=True
        )
    return tuple(kind == SLIDING for kind in kinds)


def _overridden(keys: Keys, sliding: tuple[bool, ...], everywhere: bool | None) -> tuple[bool, ...]:  # noqa: FBT001
    """Apply ``use_swa``, which makes all layers slide."""
    listed = keys.get("layer_types") is not None
    if everywhere and listed and not all(sliding):
        keys.say(
            "use_swa",
            f"it is true, which makes all layers slide, and layer_types lists {sliding.count(False)} as full; correct "
            "either (allowed, all slide).",
        )
    if everywhere is False and any(sliding):
        keys.say(
            "use_swa",
            f"it is false and layer_types makes {sliding.count(True)} layers slide; correct either (allowed, they "
            "slide).",
        )
    return (True,) * len(sliding) if everywhere else sliding


def _zlab_window(keys: Keys, sliding: tuple[bool, ...]) -> int | None:
    inner, outer = keys.optional("swa_window_size"), keys.optional("sliding_window")
    if any(sliding) and None not in (inner, outer) and inner != outer:
        keys.say(
            "swa_window_size",
            f"it is {inner} and sliding_window is {outer}; correct either (allowed, {inner} counts).",
        )
    return _size(keys, sliding, inner or outer)


def _size(keys: Keys, sliding: tuple[bool, ...], size: int | None) -> int | None:
    if any(sliding) and size is None and not is_integer(keys.get("sliding_window")):
        keys.say(
            "sliding_window",
            f"{sliding.count(True)} layers slide and there is no size; write it (allowed, they see all context and "
            "stay causal, as in the reference implementation).",
        )
    return size


def _check_switch(keys: Keys, sliding: tuple[bool, ...]) -> None:
    """``use_sliding_window`` must be true where layers slide: Transformers forgets the size otherwise."""
    if not any(sliding):
        return
    switch = keys.flag("use_sliding_window")
    if switch is None:
        keys.notes.append(
            "use_sliding_window is absent: layers slide as layer_types says, but Transformers and llama.cpp's "
            "converter take it for false; write it as true."
        )
    if switch is False:
        keys.say(
            "use_sliding_window",
            f"it is false and {sliding.count(True)} layers are {SLIDING}: engines disagree on whether they slide; set "
            "it to true, or the layers to full_attention (allowed, they slide).",
        )


def _explicit_causality(keys: Keys) -> bool | None:
    """``is_causal`` or ``dflash_config.causal``, which count for all layers."""
    outer, inner = keys.flag("is_causal"), keys.flag("causal")
    if None not in (outer, inner) and outer != inner:
        keys.say(
            "is_causal",
            f"it is {str(outer).lower()} and causal is {str(inner).lower()}; take one of them out (allowed, is_causal "
            "counts).",
        )
    return inner if outer is None else outer
