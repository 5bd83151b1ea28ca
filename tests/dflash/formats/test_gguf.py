"""GGUF drafters: the same meaning as the folder that they were converted from, and what only they can get wrong."""

from dataclasses import replace

import pytest
import torch
from dflash.drafter_files import write_drafter
from dflash.formats.drafters import (
    DFLASH2,
    DSPARK,
    config_of,
    features_of,
    found_in,
    logits_of,
    problem_keys,
    source_of,
    weights,
)
from dflash.formats.gguf_files import DFLASH2_GGUF, DSPARK_GGUF, write_gguf_drafter

from outrider.checkpoint import open_checkpoint
from outrider.errors import UnsupportedError
from outrider.models.config import Rope
from outrider.models.dflash.config import LayerMask


@pytest.mark.parametrize(
    ("drafter", "keys"),
    [
        ({}, {}),
        ({"attention_bias": False}, {}),
        ({"attention_sink_bias": True}, {}),
        ({"draft_vocab_size": 40}, {}),
        (DFLASH2, DFLASH2_GGUF | {"attention.causal": False}),
        (DSPARK, DSPARK_GGUF),
        (DSPARK | {"draft_vocab_size": 40}, DSPARK_GGUF),
    ],
)
def test_a_file_means_what_its_folder_meant(tmp_path, target, drafter, keys):
    folder = write_drafter(tmp_path / "folder", **drafter)
    path = write_gguf_drafter(tmp_path / "d.gguf", drafter, **keys)
    expected, config = config_of(folder), config_of(path)
    assert replace(config, rope=expected.rope) == replace(expected, origin="gguf", num_target_layers=None)
    assert config.rope == Rope(700.0, "yarn", expected.rope.options | {"beta_fast": 32.0, "beta_slow": 1.0})
    features = features_of(config)
    logits = logits_of(target.load(path), features)
    assert torch.equal(logits, logits_of(target.load(folder), features))
    tensors = weights(**drafter)
    assert torch.allclose(logits, target.expected(config, tensors, features), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0"])
def test_stored_types_read(tmp_path, target, kind):
    exact = write_gguf_drafter(tmp_path / "exact.gguf")
    stored = write_gguf_drafter(tmp_path / "stored.gguf", kind=kind)
    features = features_of(config_of(exact))
    wanted, found = (logits_of(target.load(path), features) for path in (exact, stored))
    assert 0 < float((found - wanted).abs().max()) < 0.05 * float(wanted.std())


def test_target_layers_count_one_higher(tmp_path):
    drafter = {"target_layer_ids": [1, 9, 17]}
    assert config_of(write_gguf_drafter(tmp_path / "d.gguf", drafter, target_layers=[2, 10, 18])).taps == (1, 9, 17)


@pytest.mark.parametrize("causal", [None, False, True])
def test_windows_and_causality(tmp_path, causal):
    path = write_gguf_drafter(tmp_path / "d.gguf", **{"attention.causal": causal})
    first, full = config_of(path).layers[:2]
    assert first == LayerMask(12, causal=causal is not False)
    assert full == LayerMask(None, causal=causal is True)
    assert any("attention.causal is absent" in note for note in found_in(path).notes) is (causal is None)


def test_a_file_without_windows_is_full(tmp_path):
    path = write_gguf_drafter(
        tmp_path / "d.gguf", **{"attention.sliding_window": None, "attention.sliding_window_pattern": None}
    )
    assert config_of(path).layers == (LayerMask(None, causal=False),) * 3


def test_scales_read(tmp_path):
    path = write_gguf_drafter(
        tmp_path / "d.gguf",
        embedding_scale=2.5,
        logit_scale=0.1,
        final_logit_softcapping=30.0,
        **{"attention.value_scale": 0.707},
    )
    config = config_of(path)
    found = (config.embedding_scale, config.output_multiplier, config.soft_cap, config.value_scale)
    assert found == (2.5, 0.1, 30.0, 0.707)


def test_a_table_of_its_own_without_a_head_is_the_head_too(tmp_path, target):
    table = torch.randn(265, 32, generator=torch.Generator().manual_seed(0))
    path = write_gguf_drafter(tmp_path / "d.gguf", tensors={"token_embd.weight": table})
    config = config_of(path)
    assert (config.own_embedding, config.own_head) == (True, True)
    features = features_of(config)
    tensors = weights() | {"embed_tokens.weight": table, "lm_head.weight": table}
    expected = target.expected(config, tensors, features)
    assert torch.allclose(logits_of(target.load(path), features), expected, rtol=0, atol=1e-9)


def test_degenerate_sections_of_a_drafter_for_m_rope_are_plain_positions(tmp_path):
    path = write_gguf_drafter(tmp_path / "d.gguf", **{"rope.dimension_sections": [8, 0, 0, 0]})
    assert config_of(path).rope.theta == 700.0


def test_a_missing_block_size_is_llama_cpps_default(tmp_path):
    path = write_gguf_drafter(tmp_path / "d.gguf", block_size=None)
    assert config_of(path).block_size == 16
    assert "block_size is absent: 16" in " ".join(found_in(path).notes)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"target_layers": None}, "target_layers"),
        ({"target_layers": [0]}, "target_layers"),
        ({"target_layers": [1, 2]}, "target_layers"),
        ({"mask_token": None}, "mask_token_id"),
        ({"mask_token": 265}, "mask_token_id"),
        ({"attention.sliding_window_pattern": None}, "attention.sliding_window_pattern"),
        ({"attention.sliding_window_pattern": [True]}, "attention.sliding_window_pattern"),
        ({"rope.dimension_count": 4}, "rope.dimension_count"),
        ({"rope.dimension_sections": [3, 3, 2, 0]}, "rope.dimension_sections"),
        ({"rope.scaling.type": "longrope"}, "rope"),
        ({"attention.scale": 0.5}, "attention.scale"),
        ({"attention.value_length": 8}, "attention.value_length"),
        ({"hidden_activation": "gelu"}, "hidden_activation"),
        ({"hyper_connection.count": 4}, "hyper_connection.count"),
        ({"frobnicate": 1}, "frobnicate"),
        ({"block_count": 2}, "attention.sliding_window_pattern"),
        ({"embedding_length": None}, "embedding_length"),
        ({"selector_rank": 6}, "conv_kernel_size"),
        ({"tensors": {"blk.0.attn_v.weight": None}}, "tensors"),
        ({"tensors": {"blk.0.attn_post_norm.weight": torch.ones(32)}}, "unexpected_tensors"),
        ({"tensors": {"fc.scale": torch.ones(1)}}, "unexpected_tensors"),
        ({"tensors": {"fc.weight": torch.ones(32, 64)}}, "target_layers"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, changes, key):
    assert key in problem_keys(write_gguf_drafter(tmp_path / "d.gguf", **changes))


def test_a_model_is_no_drafter_and_a_drafter_no_model(tmp_path):
    path = write_gguf_drafter(tmp_path / "d.gguf")
    with pytest.raises(UnsupportedError, match="'dflash', which is not run"):
        open_checkpoint(source_of(path))
