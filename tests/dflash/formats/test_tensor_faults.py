"""Tensors that contradict the config, or belong to a drafter of another kind, are refused by name."""

import pytest
import torch
from dflash.drafter_files import DEFAULTS, change_config, weights_of, write_drafter
from dflash.formats.drafters import found_in, problem_keys, refusal, source_of

from outrider.errors import UnsupportedError
from outrider.models.dflash.formats import read_drafter

SHAPES = {
    "fc narrower than the taps": (
        {"fc.weight": torch.ones(32, 32)},
        "target_layer_ids: fc.weight reads 32 features, and 2 taps of 32 give 64; 1 taps would fit",
    ),
    "fc of another width": (
        {"fc.weight": torch.ones(32, 96)},
        "3 taps would fit",
    ),
    "fc of a target of another width": (
        {"fc.weight": torch.ones(32, 80)},
        "target_hidden_size=40 would fit",
    ),
    "fc of a drafter of another width": (
        {"fc.weight": torch.ones(16, 64)},
        "fc.weight: the config implies [32, 64], found [16, 64]",
    ),
    "a tensor missing": (
        {"norm.weight": None, "layers.1.self_attn.k_norm.weight": None},
        "2 of 48 are missing, first norm.weight, layers.1.self_attn.k_norm.weight",
    ),
    "a tensor of another shape": (
        {"layers.0.mlp.up_proj.weight": torch.ones(40, 32)},
        "layers.0.mlp.up_proj.weight: the config implies [48, 32], found [40, 32]",
    ),
    "S6 a head with padding": ({"lm_head.weight": torch.ones(272, 32)}, "lm_head.weight: the config implies [265, 32]"),
    "S15 Laguna's gates": (
        {"layers.0.self_attn.g_proj.weight": torch.ones(4, 32)},
        "g_proj: layers.0.self_attn.g_proj",
    ),
    "S15 Laguna's norms": ({"aux_hidden_norms.0.weight": torch.ones(32)}, "as Laguna drafters do"),
    "S15 fused queries": (
        {"layers.0.self_attn.qkv_proj.weight": torch.ones(128, 32)},
        "queries, keys and values in one",
    ),
    "fused gates": ({"layers.0.mlp.gate_up_proj.weight": torch.ones(96, 32)}, "gate and up in one"),
    "two names of one tensor": ({"model.norm.weight": torch.ones(32)}, "two names of norm.weight"),
    "a mask embedding of another width": (
        {"mask_embedding": torch.ones(16)},
        "mask_embedding: the config implies [32]",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tensors_that_contradict_the_config_are_refused(tmp_path, name):
    tensors, words = SHAPES[name]
    folder = write_drafter(tmp_path, target_layer_ids=[0, 1], num_target_layers=4, tensors=tensors)
    assert words in refusal(folder, "unexpected_tensors")


def test_tensors_without_a_use_may_be_allowed(tmp_path):
    folder = write_drafter(tmp_path, tensors={"layers.0.self_attn.sinks": torch.ones(4), "extra": torch.ones(1)})
    assert "no use for 2 tensors: extra, layers.0.self_attn.sinks; a key that calls for them is missing" in refusal(
        folder
    )
    assert read_drafter(source_of(folder), allow=["unexpected_tensors"]).config.sinks is False


def test_a_reduced_vocabulary_needs_its_table(tmp_path):
    folder = write_drafter(tmp_path, draft_vocab_size=40, tensors={"d2t": None})
    assert "d2t: the head has 40 of 265 words and the files lack d2t" in refusal(folder, "d2t")


def test_a_table_without_a_reduced_vocabulary_is_not_in_the_way(tmp_path):
    values = weights_of(DEFAULTS | {"draft_vocab_size": 265})
    folder = write_drafter(tmp_path, tensors={"d2t": values["d2t"] * 0})
    assert problem_keys(folder) == []


def test_an_ordinary_model_is_no_drafter(tmp_path, target_folder):
    with pytest.raises(UnsupportedError, match="is no DFlash drafter"):
        found_in(target_folder)


def test_many_tensors_of_other_shapes_are_one_problem(tmp_path):
    folder = write_drafter(tmp_path)
    change_config(folder, intermediate_size=40)
    said = refusal(folder)
    assert "tensors: 9 of" in said
    assert "have other shapes than the config implies, first layers.0.mlp.gate_proj.weight: implied [40, 32]" in said
