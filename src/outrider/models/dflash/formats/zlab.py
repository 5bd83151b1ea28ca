"""A z-lab config.json, of either generation and with the extensions of SpecForge, DeepSpec, vLLM and MiMo.

The drafter's own keys stand at the top or in ``dflash_config``, where they count first. Taps are 0-based: the
output of that block.
"""

from collections.abc import Mapping
from typing import Any

from outrider.checkpoint import TensorInfo
from outrider.models.dflash.config import Confidence, DFlashConfig, Markov
from outrider.models.dflash.formats.keys import Keys, shown
from outrider.models.dflash.formats.positions import UNDERSTOOD as POSITIONS
from outrider.models.dflash.formats.positions import read_rope
from outrider.models.dflash.formats.shape import SIZES, MaskToken, own_words, read_backbone
from outrider.models.dflash.formats.successors import (
    DFLASH2_KEYS,
    DFLY_KEYS,
    DOMINO_KEYS,
    DSPARK_KEYS,
    has_dflash2,
    read_confidence,
    read_convolution,
    read_markov,
    read_selector,
    refuse_others,
)
from outrider.models.dflash.formats.windows import UNDERSTOOD as WINDOWS
from outrider.models.dflash.formats.windows import zlab_masks

NESTED = "dflash_config"
BLOCK = 16  # the reference implementation's default
DFLASH, DFLASH2 = "DFlashDraftModel", "DFlash2DraftModel"
DEEPSPEC, SPECFORGE = "Qwen3DSparkModel", "DSparkDraftModel"
ARCHITECTURES = (DFLASH, DFLASH2, DEEPSPEC, SPECFORGE)
MODEL_TYPES = ("qwen3", "dflash", "dspark")
ANCHOR = ("sample_from_anchor", "dspark_bonus_anchor", "shift_label")
UNDERSTOOD = frozenset(
    (
        *SIZES, *POSITIONS, *WINDOWS, *DFLASH2_KEYS, *DSPARK_KEYS, *ANCHOR, *DOMINO_KEYS, *DFLY_KEYS,
        NESTED, "architectures", "model_type", "projector_type", "attention_mode", "use_aux_hidden_state",
        "block_size", "mask_token_id", "dspark_noise_token_id", "mask_token",
        "target_layer_ids", "eagle_aux_hidden_state_layer_ids", "num_target_layers", "target_hidden_size",
        "draft_vocab_size", "attention_sink_bias", "attention_value_scale",
        "input_embedding_scale", "output_multiplier", "final_logit_softcapping", "quantization_config",
    )
)  # fmt: skip
# What training, Transformers and tokenizers leave behind; drafting does not depend on it.
MEANINGLESS = frozenset(
    (
        "_attn_implementation", "_attn_implementation_autoset", "_name_or_path", "add_cross_attention",
        "attention_dropout", "attn_implementation", "auto_map", "bos_token_id", "chunk_size_feed_forward",
        "confidence_head_alpha", "cross_attention_hidden_size", "decoder_start_token_id", "dtype", "eos_token_id",
        "finetuning_task", "id2label", "initializer_range", "is_decoder", "is_encoder_decoder", "label2id",
        "loss_decay_gamma", "max_anchors", "name_or_path", "num_anchors", "output_attentions", "output_hidden_states",
        "outrider_repair",  # what outrider repair found, key by key
        "pad_token_id", "prefix", "problem_type", "pruned_heads", "return_dict", "sep_token_id",
        "task_specific_params", "tf_legacy_loss", "tie_encoder_decoder", "tie_word_embeddings", "tokenizer_class",
        "torch_dtype", "torchscript", "transformers_version", "use_bfloat16", "use_cache",
    )
)  # fmt: skip


def zlab_keys(raw: Mapping[str, Any]) -> Keys:
    """Return the keys of a config.json."""
    inner = raw.get(NESTED)
    keys = Keys({f"{NESTED}.": inner if isinstance(inner, dict) else {}, "": raw})
    if inner is not None and not isinstance(inner, dict):
        keys.say(NESTED, f"expected an object, found {shown(inner)}; correct it in the config.", fatal=True)
    return keys


def read_zlab(keys: Keys, tensors: Mapping[str, TensorInfo], mask: MaskToken) -> DFlashConfig:
    """Return what the config says; what is wrong with it is noted in ``keys``.

    Args:
        keys: made by ``zlab_keys``.
        tensors: under z-lab names.
        mask: whether the files bring a vector for the masked slots.
    """
    _check_kind(keys)
    refuse_others(keys)
    backbone = read_backbone(keys)
    dflash2 = has_dflash2(keys) or _architecture(keys) == DFLASH2
    markov, confidence = _read_dspark(keys, tensors)
    cap = keys.get("final_logit_softcapping")
    config = DFlashConfig(
        kind="dflash2" if dflash2 else "dspark" if markov or confidence else "dflash",
        origin="z-lab",
        **backbone._asdict(),
        rope=read_rope(keys),
        layers=zlab_masks(keys, keys.integer("num_hidden_layers")),
        block_size=_block_size(keys),
        anchor_predicts=_anchor_predicts(keys, dspark=bool(markov or confidence)),
        mask_token=mask.read(keys, "mask_token_id", "dspark_noise_token_id"),
        mask_embedding=mask.embedding,
        taps=_taps(keys),
        target_hidden_size=keys.integer("target_hidden_size", backbone.hidden_size),
        num_target_layers=keys.optional("num_target_layers"),
        **own_words(keys.optional("draft_vocab_size"), backbone.vocab_size, tensors)._asdict(),
        embedding_scale=keys.number("input_embedding_scale", 1.0),
        output_multiplier=keys.number("output_multiplier", 1.0),
        soft_cap=None if cap is None or cap == 0 else keys.number("final_logit_softcapping", 1.0),
        value_scale=keys.number("attention_value_scale", 1.0),
        sinks=keys.flag("attention_sink_bias") is True,
        convolution=read_convolution(keys) if dflash2 else None,
        selector=read_selector(keys) if dflash2 else None,
        markov=markov,
        confidence=confidence,
    )
    keys.report_unknown(UNDERSTOOD | MEANINGLESS)
    return config


def _architecture(keys: Keys) -> str | None:
    found = keys.get("architectures")
    return str(found[0]) if isinstance(found, list) and found else None


def _check_kind(keys: Keys) -> None:
    architecture = _architecture(keys)
    if architecture is not None and architecture not in ARCHITECTURES:
        keys.say(
            "architectures",
            f"expected {', '.join(ARCHITECTURES)}, found {shown(architecture)}, whose differences are not known "
            "(allowed, it is run as its keys and tensors say).",
        )
    if architecture == DFLASH and has_dflash2(keys):
        keys.say(
            "architectures",
            f"it is {DFLASH} and the keys are DFlash2's, which the engines choose by name; write {DFLASH2} (allowed, "
            "it is run as DFlash2).",
        )
    if (kind := keys.get("model_type")) not in (None, *MODEL_TYPES):
        keys.say(
            "model_type",
            f"expected qwen3, whose layers DFlash drafters have, found {shown(kind)} (allowed, it is run as qwen3).",
        )
    if (mode := keys.get("attention_mode")) not in (None, "gqa"):
        keys.say("attention_mode", f"expected gqa, found {shown(mode)}, which is not run.", fatal=True)
    if keys.flag("use_aux_hidden_state") is False:
        keys.say("use_aux_hidden_state", "it is false: the drafter has no taps; that is not run.", fatal=True)
    if keys.get("quantization_config") is not None:
        keys.say(
            "quantization_config",
            "the weights are quantised, which is read from GGUF files alone; use the drafter before quantisation.",
            fatal=True,
        )


def _block_size(keys: Keys) -> int:
    if keys.get("block_size") is None:
        keys.notes.append(f"block_size is absent: {BLOCK}, the reference implementation's default.")
    return keys.integer("block_size", BLOCK)


def _read_dspark(keys: Keys, tensors: Mapping[str, TensorInfo]) -> tuple[Markov | None, Confidence | None]:
    named = keys.get("projector_type") == "dspark" or _architecture(keys) in (DEEPSPEC, SPECFORGE)
    markov = read_markov(keys, rank=None if named else 0)
    return markov, read_confidence(keys, tensors, markov)


def _anchor_predicts(keys: Keys, *, dspark: bool) -> bool:
    """Whether the anchor's slot predicts too, which training decides and configs seldom say (sglang-jax#1619)."""
    sampled, bonus = keys.flag("sample_from_anchor"), keys.flag("dspark_bonus_anchor")
    if sampled is not None and sampled is bonus:
        keys.say(
            "dspark_bonus_anchor",
            f"it and sample_from_anchor are both {str(bonus).lower()}, and are opposites; correct either (allowed, "
            "sample_from_anchor counts).",
        )
    if sampled is not None or bonus is not None:
        return sampled if sampled is not None else not bonus
    if _architecture(keys) == DEEPSPEC:
        keys.notes.append("sample_from_anchor is absent: true, as DeepSpec trains; every slot predicts its successor.")
        return True
    if dspark:
        keys.say(
            "sample_from_anchor",
            "expected true or false, found none: a DSpark drafter of one layout run in the other accepts nothing; "
            "write what it was trained with (allowed, true, as the engines take it).",
        )
    return dspark


def _taps(keys: Keys) -> tuple[int, ...]:
    if keys.get("mask_token") is not None and keys.get("mask_token_id") is None:
        keys.say("mask_token", "it names a token by its text; write mask_token_id, its number.", fatal=True)
    taps, shifted = keys.integers("target_layer_ids"), keys.integers("eagle_aux_hidden_state_layer_ids")
    if shifted is not None:
        from_shifted = tuple(tap - 1 for tap in shifted)
        if taps is not None and taps != from_shifted:
            keys.say(
                "eagle_aux_hidden_state_layer_ids",
                f"it is {list(shifted)}, one more than {list(from_shifted)}, and target_layer_ids is {list(taps)}; "
                "correct either (allowed, target_layer_ids counts).",
            )
        taps = taps or from_shifted
    if taps is None:
        keys.say(
            "target_layer_ids",
            "expected the target's layers that feed fc, found none; no rule gives them for published drafters, and a "
            "wrong guess of the same number loads and fails silently: take them from the training config.",
            fatal=True,
        )
        return (0,)
    return taps
