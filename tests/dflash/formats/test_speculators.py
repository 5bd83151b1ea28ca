"""Configs of the speculators library: ids one higher, its own defaults, its three types."""

from typing import Any

import pytest
from dflash.drafter_files import DEFAULTS, NESTED, weights_of, write_config, write_drafter
from dflash.formats.drafters import DFLASH2, DSPARK, config_of, found_in, problem_keys
from torch import arange

from outrider.models.dflash.config import Convolution, LayerMask, Markov, Selector

AROUND, BEHIND, FULL = LayerMask(12, causal=False), LayerMask(12, causal=True), LayerMask(None, causal=False)


def write_speculators(folder, kind="dflash", *, tensors=None, layer=None, drafter: dict[str, Any] | None = None, **own):
    """Write a drafter; ``drafter`` are z-lab keys that its weights depend on, ``layer`` and ``own`` change keys."""
    flat = DEFAULTS | (drafter or {})
    write_drafter(folder, tensors=tensors, **(drafter or {}))
    outside = (*NESTED, "num_target_layers", "draft_vocab_size", "is_causal")
    inner = {key: value for key, value in flat.items() if key not in outside}
    config = {
        "speculators_model_type": kind,
        "architectures": ["DFlashSpeculator"],
        "speculators_version": "0.9.0",
        "transformer_layer_config": inner | (layer or {}),
        "aux_hidden_state_layer_ids": [tap + 1 for tap in flat["target_layer_ids"]],
        "block_size": 6,
        "draft_vocab_size": flat.get("draft_vocab_size", flat["vocab_size"]),
        "mask_token_id": 264,
        "sliding_window_non_causal": False,
        "sample_from_anchor": False,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 5, "verifier_accept_k": 1}],
            "verifier": {"name_or_path": "Qwen/Qwen3-8B", "architectures": ["Qwen3ForCausalLM"]},
        },
    }
    write_config(folder, {key: value for key, value in (config | own).items() if value is not None})
    return folder


def test_dflash_reads_with_ids_one_lower(tmp_path):
    folder = write_speculators(tmp_path, drafter={"target_layer_ids": [1, 9, 17]})
    config = config_of(folder)
    assert (config.kind, config.origin, config.taps) == ("dflash", "speculators", (1, 9, 17))
    assert config.layers == (BEHIND, FULL, BEHIND)
    assert (config.block_size, config.mask_token, config.anchor_predicts) == (6, 264, False)
    notes = " ".join(found_in(folder).notes)
    assert "Trained for 'Qwen/Qwen3-8B'" in notes
    assert "windows that start 12 tokens before the anchor" in notes


def test_the_same_weights_mean_the_same_as_in_a_z_lab_folder(tmp_path):
    own = config_of(write_speculators(tmp_path / "speculators"))
    z_lab = config_of(write_drafter(tmp_path / "z-lab", num_target_layers=None))
    names = [name for name in z_lab.__slots__ if name != "origin"]
    assert [getattr(own, name) for name in names] == [getattr(z_lab, name) for name in names]


def test_a_last_id_that_fc_has_no_columns_for_is_dropped(tmp_path):
    folder = write_speculators(tmp_path, drafter={"target_layer_ids": [1, 9]}, aux_hidden_state_layer_ids=[2, 10, 36])
    assert config_of(folder).taps == (1, 9)
    assert "ends with 36, the verifier's last layer" in " ".join(found_in(folder).notes)


def test_the_librarys_defaults_are_taken(tmp_path):
    words = {"draft_vocab_size": 32000, "vocab_size": 32100}
    folder = write_speculators(
        tmp_path,
        drafter=words,
        block_size=None,
        draft_vocab_size=None,
        sliding_window_non_causal=None,
        sample_from_anchor=None,
        speculators_config=None,
    )
    config = config_of(folder)
    assert (config.block_size, config.draft_vocab_size, config.own_head) == (8, 32000, True)
    assert config.layers == (BEHIND, FULL, BEHIND)
    assert config.anchor_predicts is False


@pytest.mark.parametrize(("kind", "mask"), [("dflash", BEHIND), ("dflash2", AROUND)])
def test_each_type_has_its_default_of_causality(tmp_path, kind, mask):
    drafter = DFLASH2 if kind == "dflash2" else {}
    folder = write_speculators(tmp_path, kind, drafter=drafter, sliding_window_non_causal=None, **_own(drafter))
    assert config_of(folder).layers == (mask, FULL, mask)


def _own(drafter):
    return {key: value for key, value in drafter.items() if key != "is_causal"}


@pytest.mark.parametrize("said", [False, True])
def test_causality_that_is_said_counts(tmp_path, said):
    mask = AROUND if said else BEHIND
    assert config_of(write_speculators(tmp_path, sliding_window_non_causal=said)).layers == (mask, FULL, mask)


def test_dflash2_reads_with_its_defaults(tmp_path):
    drafter = {"conv_kernel_size": 2, "conv_group_size": 16, "selector_rank": 256, "selector_top_k": 16}
    config = config_of(write_speculators(tmp_path, "dflash2", drafter=drafter))
    assert (config.convolution, config.selector) == (Convolution(2, 16), Selector(256, 16))


def test_dspark_reads_and_its_anchor_predicts_by_default(tmp_path):
    folder = write_speculators(
        tmp_path,
        "dspark",
        drafter=DSPARK,
        sample_from_anchor=None,
        speculators_config=None,
        **DSPARK,
    )
    config = config_of(folder)
    assert (config.kind, config.anchor_predicts, config.markov) == ("dspark", True, Markov(6, "vanilla"))


def test_tables_that_trainers_keep_are_passed_over(tmp_path):
    head = weights_of(DEFAULTS | {"draft_vocab_size": 265})["lm_head.weight"]
    folder = write_speculators(
        tmp_path, tensors={"verifier_lm_head.weight": head, "verifier_norm.weight": head[0].clone(), "t2d": arange(265)}
    )
    config = config_of(folder)
    assert (config.own_head, config.own_embedding) == (False, False)
    assert "Not used: t2d, verifier_lm_head.weight, verifier_norm.weight." in found_in(folder).notes


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"aux_hidden_state_layer_ids": None}, "aux_hidden_state_layer_ids"),
        ({"aux_hidden_state_layer_ids": [0]}, "aux_hidden_state_layer_ids"),
        ({"speculators_model_type": "eagle3"}, "speculators_model_type"),
        ({"transformer_layer_config": None}, "transformer_layer_config"),
        ({"mask_token_id": None}, "mask_token_id"),
        ({"mask_token_id": 265}, "mask_token_id"),
        ({"block_size": 8}, "speculative_tokens"),
        ({"sample_from_anchor": True}, "speculative_tokens"),
        ({"draft_vocab_size": None}, "draft_vocab_size"),
        ({"draft_vocab_size": 40}, "d2t"),
        ({"norm_output": True}, "norm_output"),
        ({"layer": {"layer_types": ["full_attention"]}}, "layer_types"),
        ({"layer": {"use_sliding_window": False}}, "use_sliding_window"),
        ({"layer": {"frobnicate": 1}}, "frobnicate"),
        ({"layer": {"model_type": "gemma4"}}, "transformer_layer_config.model_type"),
        ({"layer": {"partial_rotary_factor": 0.25}}, "partial_rotary_factor"),
        ({"layer": {"rope_parameters": {"sliding_attention": {"rope_theta": 1e6}}}}, "rope_parameters"),
        ({"layer": {"rope_parameters": {"rope_theta": 1e6, "mrope_section": [1, 2, 3]}}}, "mrope_section"),
        ({"target_hidden_size": 48}, "aux_hidden_state_layer_ids"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, change, key):
    assert key in problem_keys(write_speculators(tmp_path, **change))
