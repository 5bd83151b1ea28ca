"""Configs of the z-lab format: both generations, the extensions, and what DeepSpec and SpecForge write."""

import json

import pytest
from dflash.drafter_files import DEFAULTS, change_config, drafter_shapes, weights_of, write_config, write_drafter
from dflash.formats.drafters import DFLASH2, DSPARK, config_of, found_in
from safetensors.torch import save_file

from outrider.models.config import Rope
from outrider.models.dflash.config import Confidence, Convolution, LayerMask, Markov, Selector

SLIDING, FULL = LayerMask(12, causal=True), LayerMask(None, causal=False)


def test_the_new_generation_reads(tmp_path):
    config = config_of(write_drafter(tmp_path))
    assert (config.kind, config.origin) == ("dflash", "z-lab")
    assert config.layers == (SLIDING, FULL, SLIDING)
    assert config.rope == Rope(700.0, "yarn", {"factor": 2.0, "original_max_position_embeddings": 256})
    assert (config.block_size, config.max_tokens, config.mask_token, config.taps) == (6, 5, 264, (0,))
    assert (config.num_heads, config.num_kv_heads, config.head_dim, config.hidden_size) == (4, 2, 16, 32)
    assert (config.norm_eps, config.max_positions, config.biases, config.num_target_layers) == (1e-5, 512, True, 2)


def test_the_old_generation_reads(tmp_path):
    folder = write_drafter(tmp_path, attention_bias=False, block_size=None)
    change_config(
        folder,
        "rope_parameters",
        block_size=16,
        rope_theta=1000000,
        rope_scaling=None,
        layer_types=["full_attention"] * 3,
        sliding_window=None,
        use_sliding_window=False,
        max_window_layers=3,
        auto_map={"AutoModel": "dflash.DFlashDraftModel"},
        dtype="bfloat16",
        tie_word_embeddings=False,
    )
    config = config_of(folder)
    assert config.layers == (FULL,) * 3
    assert config.rope == Rope(1e6)
    assert (config.block_size, config.biases) == (16, False)


def test_the_defaults_of_the_reference_implementation_are_taken_and_told(tmp_path):
    folder = write_drafter(tmp_path, block_size=None, rope_parameters=None, use_sliding_window=None, layer_types=None)
    config = config_of(folder)
    assert (config.block_size, config.rope, config.layers) == (16, Rope(10000.0), (FULL,) * 3)
    notes = " ".join(found_in(folder).notes)
    assert "block_size is absent: 16" in notes
    assert "rope_theta is absent: 10000" in notes


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({}, (SLIDING, FULL, SLIDING)),
        ({"is_causal": False}, (LayerMask(12, causal=False), FULL, LayerMask(12, causal=False))),
        ({"is_causal": True}, (SLIDING, LayerMask(None, causal=True), SLIDING)),
        ({"causal": True}, (SLIDING, LayerMask(None, causal=True), SLIDING)),
        ({"is_causal": True, "causal": True}, (SLIDING, LayerMask(None, causal=True), SLIDING)),
        ({"use_sliding_window": None}, (SLIDING, FULL, SLIDING)),
        ({"layer_types": None}, (FULL,) * 3),
        ({"layer_types": None, "max_window_layers": 1}, (FULL, SLIDING, SLIDING)),
        ({"layer_types": None, "max_window_layers": 1, "use_sliding_window": False}, (FULL,) * 3),
        (
            {"layer_types": None, "sliding_window": None, "use_swa": True, "swa_window_size": 9},
            (LayerMask(9, causal=False),) * 3,
        ),
        ({"layer_types": None, "use_swa": True}, (LayerMask(12, causal=False),) * 3),
        ({"layer_types": None, "use_swa": True, "causal": True}, (SLIDING,) * 3),
        ({"layer_types": ["sliding_attention"] * 3, "use_swa": True}, (SLIDING,) * 3),
        ({"sliding_window": None, "swa_window_size": 9}, (LayerMask(9, causal=True), FULL, LayerMask(9, causal=True))),
    ],
)
def test_windows_and_causality_follow_the_keys(tmp_path, changes, layers):
    assert config_of(write_drafter(tmp_path, **changes)).layers == layers


@pytest.mark.parametrize(
    ("changes", "attributes"),
    [
        ({"input_embedding_scale": 5.5}, {"embedding_scale": 5.5}),
        ({"output_multiplier": 0.25}, {"output_multiplier": 0.25}),
        ({"final_logit_softcapping": 30.0}, {"soft_cap": 30.0}),
        ({"final_logit_softcapping": 0}, {"soft_cap": None}),
        ({"attention_value_scale": 0.7}, {"value_scale": 0.7}),
        ({"attention_sink_bias": True}, {"sinks": True}),
        ({"is_neox_style": True, "partial_rotary_factor": 1.0}, {}),
        ({"sample_from_anchor": True}, {"anchor_predicts": True, "max_tokens": 6}),
        ({"dspark_bonus_anchor": True}, {"anchor_predicts": False}),
        ({"num_target_layers": None}, {"num_target_layers": None}),
        ({"eagle_aux_hidden_state_layer_ids": [1]}, {"taps": (0,)}),
        ({"draft_vocab_size": 265}, {"draft_vocab_size": None, "own_head": True}),
        ({"draft_vocab_size": 40}, {"draft_vocab_size": 40, "own_head": True}),
        ({"projector_type": "dflash", "attention_mode": "gqa", "use_aux_hidden_state": True}, {"kind": "dflash"}),
    ],
)
def test_each_extension_reads(tmp_path, changes, attributes):
    folder = write_drafter(tmp_path, **changes, tensors={"d2t": None} if changes.get("draft_vocab_size") == 265 else {})
    config = config_of(folder)
    assert {name: getattr(config, name) for name in attributes} == attributes


def test_keys_may_stand_at_the_top_or_in_dflash_config(tmp_path):
    folder = write_drafter(tmp_path)
    nested = config_of(folder)
    raw = json.loads((folder / "config.json").read_text())
    inner = raw.pop("dflash_config")
    write_config(folder, raw | inner)
    assert config_of(folder) == nested


def test_f8_a_mask_token_that_ends_texts_is_noted(tmp_path):
    notes = found_in(write_drafter(tmp_path, eos_token_id=264)).notes
    assert "mask_token_id is 264, the end of text too; a drafter is seldom trained so." in notes


def test_dflash2_reads(tmp_path):
    config = config_of(write_drafter(tmp_path, **DFLASH2))
    assert (config.kind, config.convolution, config.selector) == ("dflash2", Convolution(2, 4), Selector(6, 5))
    assert {mask.causal for mask in config.layers} == {False}


@pytest.mark.parametrize("kind", ["vanilla", "gated", "rnn"])
def test_deepspecs_files_read_and_their_anchor_predicts(tmp_path, kind):
    folder = write_drafter(tmp_path, **DSPARK | {"markov_head_type": kind}, num_anchors=512)
    config = config_of(folder)
    assert (config.kind, config.anchor_predicts, config.max_tokens) == ("dspark", True, 6)
    assert (config.markov, config.confidence) == (Markov(6, kind), Confidence(with_markov=True))
    assert "as DeepSpec trains" in " ".join(found_in(folder).notes)


def test_deepspecs_dflash_has_no_head_and_its_anchor_predicts(tmp_path):
    config = config_of(write_drafter(tmp_path, architectures=["Qwen3DSparkModel"], markov_rank=0))
    assert (config.kind, config.anchor_predicts, config.markov) == ("dflash", True, None)


def test_specforges_dspark_reads_with_its_layout_said(tmp_path):
    folder = write_drafter(
        tmp_path,
        **DSPARK | {"confidence_head_with_markov": False},
        architectures=["DSparkDraftModel"],
        projector_type="dspark",
        sample_from_anchor=False,
        confidence_head_alpha=1.0,
    )
    config = config_of(folder)
    assert (config.kind, config.anchor_predicts, config.confidence) == ("dspark", False, Confidence(with_markov=False))


def test_tables_that_only_the_files_show_are_the_drafters_own(tmp_path):
    shared = config_of(write_drafter(tmp_path / "shared"))
    shapes = {"embed_tokens.weight": (265, 32), "lm_head.weight": (265, 32)}
    values = weights_of(DEFAULTS | {"draft_vocab_size": 265})
    own = config_of(
        write_drafter(
            tmp_path / "own",
            tensors={name: values["lm_head.weight"].clone() for name in shapes},
        )
    )
    assert (shared.own_embedding, shared.own_head) == (False, False)
    assert (own.own_embedding, own.own_head) == (True, True)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attention_bias": False},
        {"attention_sink_bias": True},
        {"target_layer_ids": [0, 1, 2], "num_target_layers": 4},
        {"draft_vocab_size": 40},
        DFLASH2,
        DSPARK,
        DSPARK | {"markov_head_type": "gated"},
        DSPARK | {"markov_head_type": "rnn", "confidence_head_with_markov": False},
        DSPARK | {"draft_vocab_size": 40},
    ],
)
def test_what_a_config_calls_for_is_what_drafters_hold(tmp_path, changes):
    config = config_of(write_drafter(tmp_path, **changes))
    assert config.tensor_shapes() == drafter_shapes(DEFAULTS | changes, 32)


def test_taps_of_another_width_need_their_key(tmp_path):
    folder = write_drafter(tmp_path, target_hidden=48, target_hidden_size=48)
    assert config_of(folder).target_hidden_size == 48


def test_other_names_of_tensors_read(tmp_path):
    values = weights_of(DEFAULTS | DFLASH2 | {"attention_sink_bias": True})
    others = {"fc.": "encoder.fc.", "hidden_norm.": "encoder.output_norm_enc.", "sinks": "attention_sink_bias"}
    others["codebook"] = "codebook.weight"
    renamed = {f"model.{_replaced(name, others)}": value for name, value in values.items()}
    extra = {"verifier_norm.weight": values["norm.weight"], "t2d": values["norm.weight"]}
    folder = write_drafter(tmp_path, **DFLASH2, attention_sink_bias=True)
    save_file({**renamed, **{name: value.clone() for name, value in extra.items()}}, folder / "model.safetensors")
    assert config_of(folder).kind == "dflash2"
    assert set(found_in(folder).checkpoint.tensors) == set(values)
    assert "Not used: t2d, verifier_norm.weight." in found_in(folder).notes


def test_weights_may_lie_under_any_one_name(tmp_path):
    folder = write_drafter(tmp_path)
    (folder / "model.safetensors").rename(folder / "dflash_draft_model.safetensors")
    assert config_of(folder).kind == "dflash"


def _replaced(name, others):
    for part, other in others.items():
        name = name.replace(part, other)
    return name
