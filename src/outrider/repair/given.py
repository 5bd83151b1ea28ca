"""What an existing config says to the points that tensors leave open; it is a place to start from, no more.

What the tensors determine replaces what the config says of it, and keys that cannot be are left out.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from outrider.checkpoint import TensorInfo
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.problems import Problem
from outrider.models.dflash.formats.shape import MaskToken
from outrider.models.dflash.formats.speculators import INNER, TAPS, is_speculators, read_speculators, speculators_keys
from outrider.models.dflash.formats.writing import zlab_config
from outrider.models.dflash.formats.zlab import NESTED, read_zlab, zlab_keys
from outrider.repair.sizes import SIZES

Raw = dict[str, Any]
ROPE_KEYS = frozenset(("rope_theta", "rope_scaling", "rope_parameters"))
# Keys without which a config cannot be read, and their other names; where they are absent, what is usual stands in.
_NEEDED = {
    "mask_token_id": "dspark_noise_token_id",
    "target_layer_ids": "eagle_aux_hidden_state_layer_ids",
    "selector_top_k": "selector_top_k",
}


class Given(NamedTuple):
    """An existing config.

    Attributes:
        config: what it says, its sizes replaced by those of the tensors; None where it says nothing.
        keys: that it holds, in whichever object.
        notes: what was left out of it.
    """

    config: DFlashConfig | None
    keys: frozenset[str]
    notes: tuple[str, ...]


def read_given(raw: Raw, usual: DFlashConfig, tensors: Mapping[str, TensorInfo]) -> Given:
    """Read a config.json for what it says beside the sizes.

    Args:
        raw: its keys; empty where there is none.
        usual: what fits the tensors; its sizes go before what the config says of them.
        tensors: under z-lab names.
    """
    if not raw:
        return Given(None, frozenset(), ())
    inner = [part for key in (NESTED, INNER) if isinstance(part := raw.get(key), dict)]
    keys = frozenset(key for part in (raw, *inner) for key, value in part.items() if value is not None)
    sizes, mask, notes = zlab_config(usual), MaskToken(usual.mask_embedding), list[str]()
    for _ in keys:
        config, problems = _read(raw, sizes, tensors, mask)
        wrong = {problem.key: problem.message for problem in problems if problem.fatal}
        if not wrong:
            return Given(_with_usual(config, usual, keys), keys, tuple(notes))
        notes += [f"config.json, {key}, is not used: {message}" for key, message in wrong.items() if key in keys]
        raw = _without(raw, wrong)
    return Given(None, frozenset(), (*notes, "config.json could not be read; the search starts without it."))


def _with_usual(config: DFlashConfig, usual: DFlashConfig, keys: frozenset[str]) -> DFlashConfig:
    """Take from the target what the config does not state, instead of the format's own default."""
    if "max_position_embeddings" not in keys:
        config = replace(config, max_positions=usual.max_positions)
    return config if keys & ROPE_KEYS else replace(config, rope=usual.rope)


def _read(
    raw: Raw, sizes: Raw, tensors: Mapping[str, TensorInfo], mask: MaskToken
) -> tuple[DFlashConfig, list[Problem]]:
    usual = sizes | sizes[NESTED]
    determined = {key: value for key, value in usual.items() if key in SIZES}
    if is_speculators(raw):
        layers = raw.get(INNER)
        own = {TAPS: [1], "mask_token_id": 0} | raw | _only(determined, "target_hidden_size")
        parts = speculators_keys(own | {INNER: (layers if isinstance(layers, dict) else {}) | determined})
        return read_speculators(parts, tensors, mask), [problem for part in parts for problem in part.problems]
    nested = raw.get(NESTED)
    flat = raw | (nested if isinstance(nested, dict) else {}) | determined
    flat.pop(NESTED, None)
    absent = [key for key, other in _NEEDED.items() if flat.get(key) is None and flat.get(other) is None]
    keys = zlab_keys(flat | _only(usual, *absent))
    return read_zlab(keys, tensors, mask), keys.problems


def _only(values: Raw, *keys: str) -> Raw:
    return {key: values[key] for key in keys if key in values}


def _without(raw: Raw, wrong: Mapping[str, str]) -> Raw:
    """Take keys out, wherever they stand."""
    kept = {key: value for key, value in raw.items() if key not in wrong or isinstance(value, dict)}
    return {
        key: _without(value, wrong) if key in (NESTED, INNER) and isinstance(value, dict) else value
        for key, value in kept.items()
    }
