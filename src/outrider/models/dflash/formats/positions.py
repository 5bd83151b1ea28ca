"""The rotary embedding of a drafter's config, which must be its own and not one copied from the target.

Training through Transformers rotates whole heads on one axis whatever the target does; engines that obey a copied
``partial_rotary_factor`` or ``mrope_section`` do not (speculators#613).
"""

from typing import Any

from outrider.errors import CheckpointError
from outrider.models.config import Rope
from outrider.models.dflash.formats.keys import Keys, shown
from outrider.models.families.base import RawConfig

THETA = 10000.0  # Transformers' default
AXES = ("mrope_section", "mrope_interleaved")
UNDERSTOOD = (
    *("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", "max_position_embeddings"),
    *("is_neox_style", "rope_is_neox_style"),
)


def read_rope(keys: Keys) -> Rope:
    """Return the rotary embedding, from ``rope_parameters`` or from ``rope_theta`` and ``rope_scaling``."""
    options = _options(keys)
    _refuse_partial(keys, options)
    _refuse_axes(keys, options)
    _refuse_interleaved(keys)
    theta = _theta(keys, options)
    raw = {
        "model_type": "dflash",
        "rope_parameters": options,
        "rope_theta": theta,
        "max_position_embeddings": keys.get("max_position_embeddings"),
    }
    try:
        return RawConfig(raw).rope(THETA)
    except CheckpointError as error:
        keys.say("rope_parameters", str(error), fatal=True)
        return Rope(THETA)


def _options(keys: Keys) -> dict[str, Any]:
    """Return a copy of the options; theta is not among them."""
    new, old = keys.get("rope_parameters"), keys.get("rope_scaling")
    for key, value in (("rope_parameters", new), ("rope_scaling", old)):
        if value is not None and not isinstance(value, dict):
            keys.say(key, f"expected an object, found {shown(value)}; correct it in the config.", fatal=True)
            return {}
    if new is not None and old is not None and _without_theta(new) != _without_theta(old):
        keys.say(
            "rope_scaling",
            f"it is {shown(old)} and rope_parameters is {shown(new)}; take one of them out (allowed, rope_parameters "
            "counts).",
        )
    return _without_theta(new if new is not None else old or {})


def _without_theta(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "rope_theta"}


def _theta(keys: Keys, options: dict[str, Any]) -> float:
    inner = keys.get("rope_parameters")
    inside = inner.get("rope_theta") if isinstance(inner, dict) else None
    outside = keys.get("rope_theta")
    if inside is None and outside is None and not any(isinstance(value, dict) for value in options.values()):
        keys.notes.append(f"rope_theta is absent: {THETA:g}, Transformers' default.")
    if inside is not None and outside is not None and inside != outside:
        keys.say(
            "rope_theta",
            f"it is {shown(outside)} at the top and {shown(inside)} in rope_parameters; keep one of them (allowed, "
            "the latter counts).",
        )
    return next((value for value in (inside, outside) if value is not None), THETA)


def _refuse_partial(keys: Keys, options: dict[str, Any]) -> None:
    inside, outside = options.pop("partial_rotary_factor", None), keys.get("partial_rotary_factor")
    factor = next((value for value in (inside, outside) if value not in (None, 1)), None)
    if factor is not None:
        keys.say(
            "partial_rotary_factor",
            f"expected 1, found {shown(factor)}: it is the target's, copied, while training through Transformers "
            "rotates whole heads and vLLM obeys the key; set it to 1 (allowed, whole heads are rotated).",
        )


def _refuse_axes(keys: Keys, options: dict[str, Any]) -> None:
    found = {key: options.pop(key) for key in AXES if options.get(key) is not None}
    if options.get("rope_type", options.get("type")) == "mrope":
        found["type"] = "mrope"
        options.pop("type", None)
        options["rope_type"] = "default"
    if found:
        keys.say(
            "mrope_section",
            f"the drafter's positions have one axis, found {shown(found)}, copied from the target; take it out of the "
            "RoPE settings (allowed, one axis is used).",
        )


def _refuse_interleaved(keys: Keys) -> None:
    if keys.flag("is_neox_style", "rope_is_neox_style") is False:
        keys.say(
            "is_neox_style",
            "expected true, found false: heads whose rotary pairs are neighbours are not run; reorder the rows of q, k "
            "and their norms, or set it to true if it was copied from the target (allowed, halves are rotated).",
        )
