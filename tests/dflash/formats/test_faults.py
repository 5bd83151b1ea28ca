"""Every fault that a drafter's files can show is refused by name; what may be allowed then runs as the message says.

F in a name is a fault of training, S one of serving.
"""

import json

import pytest
from dflash.drafter_files import change_config, write_drafter
from dflash.formats.drafters import DFLASH2, DSPARK, refusal, source_of

from outrider.models.config import Rope
from outrider.models.dflash.config import LayerMask
from outrider.models.dflash.formats import read_drafter

SLIDING, FULL = LayerMask(12, causal=True), LayerMask(None, causal=False)


# What a file says, the key of the problem, words of its message, and what is run when it is allowed.
ALLOWED = {
    "F4 partial rotation copied": (
        {"partial_rotary_factor": 0.25},
        "partial_rotary_factor",
        "set it to 1",
        {"rope": Rope(700.0, "yarn", {"factor": 2.0, "original_max_position_embeddings": 256})},
    ),
    "F4 partial rotation in rope_parameters": (
        {"rope_parameters": {"rope_theta": 700.0, "partial_rotary_factor": 0.5}},
        "partial_rotary_factor",
        "found 0.5",
        {"rope": Rope(700.0)},
    ),
    "F4 M-RoPE copied": (
        {"rope_parameters": {"rope_theta": 700.0, "mrope_section": [3, 3, 2], "mrope_interleaved": True}},
        "mrope_section",
        "one axis",
        {"rope": Rope(700.0)},
    ),
    "F4 M-RoPE as a type": (
        {"rope_parameters": {"rope_theta": 700.0, "type": "mrope"}},
        "mrope_section",
        "one axis",
        {"rope": Rope(700.0)},
    ),
    "F10 a tap on the last block": (
        {"target_layer_ids": [1]},
        "last_block_tap",
        "after the final norm",
        {"taps": (1,)},
    ),
    "S1 taps of two conventions": (
        {"eagle_aux_hidden_state_layer_ids": [3]},
        "eagle_aux_hidden_state_layer_ids",
        "one more than [2]",
        {"taps": (0,)},
    ),
    "S3 unsorted taps": (
        {"target_layer_ids": [2, 0], "num_target_layers": 4},
        "target_layer_ids",
        "columns of fc.weight",
        {"taps": (2, 0)},
    ),
    "S29 a tap twice": (
        {"target_layer_ids": [1, 1], "num_target_layers": 4},
        "target_layer_ids",
        "lists a layer twice",
        {"taps": (1, 1)},
    ),
    "S29 a tap beyond the depth": ({"target_layer_ids": [7]}, "target_layer_ids", "beyond", {"taps": (7,)}),
    "S4 a sliding layer without a size": (
        {"sliding_window": None},
        "sliding_window",
        "there is no size",
        {"layers": (LayerMask(None, causal=True), FULL, LayerMask(None, causal=True))},
    ),
    "S4 sliding layers switched off": (
        {"use_sliding_window": False},
        "use_sliding_window",
        "engines disagree",
        {"layers": (SLIDING, FULL, SLIDING)},
    ),
    "S4 two sizes": (
        {"swa_window_size": 9},
        "swa_window_size",
        "sliding_window is 12",
        {"layers": (LayerMask(9, causal=True), FULL, LayerMask(9, causal=True))},
    ),
    "S4 all layers slide and one is full": (
        {"use_swa": True},
        "use_swa",
        "lists 1 as full",
        {"layers": (SLIDING,) * 3},
    ),
    "S4 no layer slides and two do": (
        {"use_swa": False},
        "use_swa",
        "2 layers slide",
        {"layers": (SLIDING, FULL, SLIDING)},
    ),
    "S5 two causalities": (
        {"is_causal": True, "causal": False},
        "is_causal",
        "causal is false",
        {"layers": (SLIDING, LayerMask(None, causal=True), SLIDING)},
    ),
    "S11 interleaved rotation": ({"is_neox_style": False}, "is_neox_style", "neighbours", {}),
    "S11 interleaved rotation by its other name": ({"rope_is_neox_style": False}, "is_neox_style", "neighbours", {}),
    "S11 two bases": (
        {"rope_theta": 1e6, "rope_parameters": {"rope_theta": 700.0}},
        "rope_theta",
        "1000000.0 at the top",
        {"rope": Rope(700.0)},
    ),
    "S11 two scalings": (
        {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
        "rope_scaling",
        "take one of them out",
        {},
    ),
    "S22 the anchor's slot is not said": (
        DSPARK | {"architectures": ["DSparkDraftModel"]},
        "sample_from_anchor",
        "found none",
        {"anchor_predicts": True},
    ),
    "S22 the anchor's slot is said twice": (
        {"sample_from_anchor": True, "dspark_bonus_anchor": True},
        "dspark_bonus_anchor",
        "opposites",
        {"anchor_predicts": True},
    ),
    "S22 labels shifted": (
        {"shift_label": True},
        "shift_label",
        "sample_from_anchor instead",
        {"anchor_predicts": False},
    ),
    "S26 DFlash2 under the name of DFlash": (
        DFLASH2 | {"architectures": ["DFlashDraftModel"]},
        "architectures",
        "write DFlash2DraftModel",
        {"kind": "dflash2"},
    ),
    "an architecture that is not known": (
        {"architectures": ["LagunaDFlashModel"]},
        "architectures",
        "whose differences are not known",
        {"kind": "dflash"},
    ),
    "layers of another kind": ({"model_type": "gemma4"}, "model_type", "expected qwen3", {}),
    "a key that is not known": ({"frobnicate": [1, 2]}, "frobnicate", "[1, 2], and what it means is not known", {}),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_may_be_allowed_is_refused_by_name_and_then_runs_as_it_says(tmp_path, name):
    changes, key, words, attributes = ALLOWED[name]
    folder = write_drafter(tmp_path, **changes)
    message = refusal(folder)
    assert f" {key}: " in message
    assert words in message
    assert f"To go on regardless: --allow {key}." in message
    draft = read_drafter(source_of(folder), allow=[key])
    assert [problem.key for problem in draft.problems] == [key]
    assert {attribute: getattr(draft.config, attribute) for attribute in attributes} == attributes


FATAL = {
    "F8 no mask token": ({"mask_token_id": None}, "mask_token_id", "take it from the training config"),
    "F8 a mask token by its text": ({"mask_token_id": None, "mask_token": "<|MASK|>"}, "mask_token", "its number"),
    "F8 a mask token outside the vocabulary": ({"mask_token_id": 265}, "mask_token_id", "vocabulary of 265"),
    "F8 a negative mask token": ({"mask_token_id": -1}, "mask_token_id", "at least 0"),
    "S29 a negative tap": ({"target_layer_ids": [-2]}, "target_layer_ids", "no layer"),
    "S29 a tap on the embedding": ({"target_layer_ids": [-1]}, "target_layer_ids", "the output of the embedding"),
    "a tap that is no number": ({"target_layer_ids": ["last"]}, "target_layer_ids", "a list of whole numbers"),
    "no taps in the list": ({"target_layer_ids": []}, "target_layer_ids", "a list of whole numbers"),
    "S21 a block of one": ({"block_size": 1}, "block_size", "at least 2 slots"),
    "S21 no block": ({"block_size": 0}, "block_size", "at least 1"),
    "layer types of another number": ({"layer_types": ["full_attention"]}, "layer_types", "=3 layers, found 1"),
    "layer types that are no list": ({"layer_types": "full"}, "layer_types", "found 'full'"),
    "a layer type that is not known": ({"layer_types": ["linear_attention"] * 3}, "layer_types", "'linear_attention'"),
    "a negative window": ({"sliding_window": -1}, "sliding_window", "at least 1"),
    "a flag that is none": ({"is_causal": "no"}, "is_causal", "true or false"),
    "Domino": ({"projector_type": "domino", "emb_dim": 256, "gru_hidden_dim": 64}, "projector_type", "'domino'"),
    "DFly": ({"enable_hidden_correction": True}, "enable_hidden_correction", "DFly"),
    "quantised weights": ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config", "GGUF"),
    "a scaling that depends on the length": (
        {"rope_parameters": {"rope_type": "dynamic"}},
        "rope_parameters",
        "dynamic",
    ),
    "scaling by type of layer": ({"rope_parameters": {"full_attention": {}}}, "rope_parameters", "by layer type"),
    "scaling that is no object": ({"rope_scaling": 3}, "rope_scaling", "an object"),
    "another activation": ({"hidden_act": "gelu"}, "hidden_act", "expected silu"),
    "biases in the MLP": ({"mlp_bias": True}, "mlp_bias", "not run"),
    "latent attention": ({"attention_mode": "mla"}, "attention_mode", "expected gqa"),
    "no features of the target": ({"use_aux_hidden_state": False}, "use_aux_hidden_state", "no taps"),
    "a head without halves": ({"head_dim": 15}, "head_dim", "an even number"),
    "heads that do not divide": ({"num_key_value_heads": 3}, "num_key_value_heads", "evenly"),
    "no rank": (DSPARK | {"markov_rank": None, "architectures": ["DSparkDraftModel"]}, "markov_rank", "found none"),
    "a block beyond the positions": ({"block_size": 10**9}, "block_size", "exceeds max_position_embeddings=512"),
    "a recurrence without a predicting anchor": (
        DSPARK | {"markov_head_type": "rnn", "sample_from_anchor": False, "architectures": ["DSparkDraftModel"]},
        "markov_head_type",
        "starts at the anchor's slot",
    ),
    "a Markov head of an unknown kind": (DSPARK | {"markov_head_type": "lstm"}, "markov_head_type", "vanilla, gated"),
    "a confidence without what it reads": (
        DSPARK | {"markov_rank": 0, "confidence_head_with_markov": True, "architectures": ["Qwen3DSparkModel"]},
        "confidence_head_with_markov",
        "no Markov head",
    ),
    "groups that do not divide": (DFLASH2 | {"conv_group_size": 5}, "conv_group_size", "no multiple"),
    "more candidates than words": (DFLASH2 | {"selector_top_k": 300}, "selector_top_k", "exceeds"),
    "a selector over few words": (DFLASH2 | {"draft_vocab_size": 40}, "draft_vocab_size", "whole vocabulary"),
    "more words than the target's": ({"draft_vocab_size": 300}, "draft_vocab_size", "exceeds"),
    "half of DFlash2": ({"selector_top_k": 4}, "selector_rank", "found none"),
    "a cap below 0": ({"final_logit_softcapping": -3.0}, "final_logit_softcapping", "above 0"),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_cannot_be_run_is_refused_even_if_allowed(tmp_path, name):
    changes, key, words = FATAL[name]
    folder = _written(tmp_path, changes)
    message = refusal(folder, key)
    assert f" {key}: " in message
    assert words in message
    assert "--allow" not in message


def _written(folder, changes):
    """Write with weights of the default shapes where the changed keys cannot make any."""
    try:
        return write_drafter(folder, **changes)
    except (KeyError, TypeError, RuntimeError, ZeroDivisionError):
        write_drafter(folder)
        raw = json.loads((folder / "config.json").read_text())
        inner = {key: value for key, value in (raw["dflash_config"] | changes).items() if value is not None}
        return change_config(folder, dflash_config=inner)


def test_s2_taps_are_never_guessed(tmp_path):
    folder = write_drafter(tmp_path)
    inner = json.loads((folder / "config.json").read_text())["dflash_config"]
    change_config(folder, dflash_config={key: value for key, value in inner.items() if key != "target_layer_ids"})
    assert "a wrong guess of the same number loads and fails silently" in refusal(folder, "target_layer_ids")


def test_a_key_that_two_places_say_differently_is_named(tmp_path):
    folder = change_config(write_drafter(tmp_path), block_size=16)
    assert "dflash_config.block_size is 6 and block_size is 16" in refusal(folder)
    assert read_drafter(source_of(folder), allow=["block_size"]).config.block_size == 6


def test_a_dflash_config_that_is_no_object_is_named(tmp_path):
    folder = change_config(write_drafter(tmp_path), dflash_config=[1])
    assert "dflash_config: expected an object, found [1]" in refusal(folder)


@pytest.mark.parametrize(
    "key", ["hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"]
)
def test_a_missing_size_is_named(tmp_path, key):
    folder = change_config(write_drafter(tmp_path), key)
    assert f"{key}: expected a whole number of at least 1, found none" in refusal(folder)


def test_several_problems_are_told_at_once_and_allowed_one_by_one(tmp_path):
    folder = write_drafter(tmp_path, frobnicate=1, partial_rotary_factor=0.25, use_sliding_window=False)
    message = refusal(folder)
    assert "--allow partial_rotary_factor --allow use_sliding_window --allow frobnicate." in message
    left = refusal(folder, "frobnicate", "use_sliding_window")
    assert "frobnicate" not in left
    draft = read_drafter(source_of(folder), allow=["frobnicate", "use_sliding_window", "partial_rotary_factor"])
    assert len(draft.problems) == 3


def test_what_cannot_be_allowed_is_told_first(tmp_path):
    message = refusal(write_drafter(tmp_path, frobnicate=1, mlp_bias=True))
    assert message.index("mlp_bias") < message.index("frobnicate")
