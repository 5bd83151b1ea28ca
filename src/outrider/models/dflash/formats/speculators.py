"""A config.json of the speculators library: types dflash, dflash2 and dspark, with that library's own defaults.

Sizes stand in ``transformer_layer_config``. Layer ids count from the embedding's output: id i + 1 is the output of
block i, and a last id that ``fc`` has no columns for is the verifier's last layer, which training alone needs.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from outrider.checkpoint import TensorInfo
from outrider.models.dflash.config import Convolution, DFlashConfig, Selector
from outrider.models.dflash.formats.keys import Keys, shown
from outrider.models.dflash.formats.positions import UNDERSTOOD as POSITIONS
from outrider.models.dflash.formats.positions import read_rope
from outrider.models.dflash.formats.shape import SIZES, MaskToken, own_words, read_backbone
from outrider.models.dflash.formats.successors import (
    DFLASH2_KEYS,
    DSPARK_KEYS,
    read_confidence,
    read_convolution,
    read_markov,
    read_selector,
)
from outrider.models.dflash.formats.windows import KINDS, speculators_masks
from outrider.models.dflash.formats.zlab import MEANINGLESS

INNER = "transformer_layer_config"
TAPS = "aux_hidden_state_layer_ids"
LAYERS = ("qwen3", "llama")  # configs; the layers are Qwen3's in any case
BLOCK, WORDS, RANK = 8, 32000, 256  # the library's defaults (0.9)
OWN = frozenset(
    (
        *("speculators_model_type", "architectures", INNER, TAPS, "block_size", "draft_vocab_size", "mask_token_id"),
        *("target_hidden_size", "sliding_window_non_causal", "sample_from_anchor", "speculators_config"),
        *(*DFLASH2_KEYS, *DSPARK_KEYS),
    )
)
OWN_MEANINGLESS = MEANINGLESS | {"speculators_version", "model_type"}
LAYER = frozenset((*SIZES, *POSITIONS, *KINDS, "model_type"))
LAYER_MEANINGLESS = MEANINGLESS | {"architectures", "pretraining_tp"}


class SpeculatorsKeys(NamedTuple):
    """Keys of the drafter and of its layers."""

    own: Keys
    layer: Keys


def is_speculators(raw: Mapping[str, Any]) -> bool:
    """Say whether a config.json is of this format."""
    return "speculators_model_type" in raw or INNER in raw


def speculators_keys(raw: Mapping[str, Any]) -> SpeculatorsKeys:
    """Return the keys of a config.json."""
    inner = raw.get(INNER)
    own = Keys({"": raw})
    if not isinstance(inner, dict):
        own.say(INNER, f"expected an object with the layers' sizes, found {shown(inner)}.", fatal=True)
        inner = {}
    return SpeculatorsKeys(own, Keys({f"{INNER}.": inner}))


def read_speculators(keys: SpeculatorsKeys, tensors: Mapping[str, TensorInfo], mask: MaskToken) -> DFlashConfig:
    """Return what the config says; what is wrong with it is noted in ``keys``.

    Args:
        keys: made by ``speculators_keys``.
        tensors: under z-lab names.
        mask: whether the files bring a vector for the masked slots.
    """
    own, layer = keys
    kind = _kind(own)
    _check_layer(layer)
    backbone = read_backbone(layer)
    width = own.integer("target_hidden_size", backbone.hidden_size)
    around = own.flag("sliding_window_non_causal")
    markov = read_markov(own, rank=RANK) if kind == "dspark" else None
    config = DFlashConfig(
        kind=kind,
        origin="speculators",
        **backbone._asdict(),
        rope=read_rope(layer),
        layers=speculators_masks(
            layer, layer.integer("num_hidden_layers"), around=kind == "dflash2" if around is None else around
        ),
        block_size=_block_size(own),
        anchor_predicts=_anchor_predicts(own, kind),
        mask_token=mask.read(own, "mask_token_id"),
        mask_embedding=mask.embedding,
        taps=_taps(own, tensors, width),
        target_hidden_size=width,
        **own_words(own.integer("draft_vocab_size", WORDS), backbone.vocab_size, tensors)._asdict(),
        convolution=read_convolution(own, Convolution(taps=2, group=16)) if kind == "dflash2" else None,
        selector=read_selector(own, Selector(rank=256, top_k=16)) if kind == "dflash2" else None,
        markov=markov,
        confidence=read_confidence(own, tensors, markov) if kind == "dspark" else None,
    )
    _check_token_count(own, config)
    own.report_unknown(OWN | OWN_MEANINGLESS)
    layer.report_unknown(LAYER | LAYER_MEANINGLESS)
    return config


def _kind(own: Keys) -> Literal["dflash", "dflash2", "dspark"]:
    found = own.get("speculators_model_type")
    known: tuple[Literal["dflash", "dflash2", "dspark"], ...] = ("dflash", "dflash2", "dspark")
    for kind in known:
        if found == kind:
            return kind
    own.say("speculators_model_type", f"expected one of {', '.join(known)}, found {shown(found)}.", fatal=True)
    return "dflash"


def _check_layer(layer: Keys) -> None:
    if (kind := layer.get("model_type")) not in (None, *LAYERS):
        layer.say(
            f"{INNER}.model_type",
            f"expected {' or '.join(LAYERS)}, found {shown(kind)} (allowed, the layers are run as qwen3's).",
        )


def _block_size(own: Keys) -> int:
    if own.get("block_size") is None:
        own.notes.append(f"block_size is absent: {BLOCK}, the default of speculators.")
    return own.integer("block_size", BLOCK)


def _anchor_predicts(own: Keys, kind: str) -> bool:
    found = own.flag("sample_from_anchor")
    return kind == "dspark" if found is None else found


def _taps(own: Keys, tensors: Mapping[str, TensorInfo], width: int) -> tuple[int, ...]:
    """Return the taps, 0-based, without a last id that fc has no columns for."""
    ids = own.integers(TAPS)
    if ids is None:
        own.say(
            TAPS,
            "expected the verifier's layers that feed fc, found none; they are never guessed: take them from the "
            "training settings.",
            fatal=True,
        )
        return (0,)
    fc = tensors.get("fc.weight")
    if fc is not None and len(ids) > 1 and fc.shape[-1] == (len(ids) - 1) * width:
        own.notes.append(f"{TAPS} ends with {ids[-1]}, the verifier's last layer, which fc does not read.")
        ids = ids[:-1]
    return tuple(number - 1 for number in ids)


def _check_token_count(own: Keys, config: DFlashConfig) -> None:
    """``speculative_tokens`` follows from the block: B - 1, or B where the anchor predicts."""
    whole = own.get("speculators_config")
    if not isinstance(whole, dict):
        return
    methods = whole.get("proposal_methods")
    counts = [method.get("speculative_tokens") for method in methods or () if isinstance(method, dict)]
    wrong = next((count for count in counts if count not in (None, config.max_tokens)), None)
    if wrong is not None:
        own.say(
            "speculative_tokens",
            f"a block of {config.block_size} proposes {config.max_tokens} tokens, found {shown(wrong)}; correct it or "
            "block_size (allowed, block_size counts).",
        )
    verifier = whole.get("verifier")
    if isinstance(verifier, dict) and verifier.get("name_or_path"):
        own.notes.append(f"Trained for {shown(verifier['name_or_path'])}.")
