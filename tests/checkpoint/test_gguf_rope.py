"""Rotary settings of GGUF files against those of Hugging Face."""

import numpy as np
import pytest
import torch
from checkpoint.checkpoint_files import source_of, tensors, write
from gguf import RopeScalingType
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from outrider.checkpoint import open_checkpoint
from outrider.errors import UnsupportedError


def rope_of(path):
    return open_checkpoint(source_of(path)).config["rope_parameters"]


def yarn(writer):
    writer.add_rope_scaling_type(RopeScalingType.YARN)
    writer.add_rope_scaling_factor(4.0)
    writer.add_rope_scaling_orig_ctx_len(128)


def llama3_divisors(factor):
    """What Transformers' own frequencies were divided by."""
    rope = {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config = LlamaConfig(hidden_size=256, num_attention_heads=2, head_dim=128, rope_parameters=rope)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = 500000.0 ** -(torch.arange(0, 128, 2).float() / 128)
    return (plain / scaled).numpy(), rope


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama_3_divisors_are_recognised(tmp_path, factor):
    divisors, expected = llama3_divisors(factor)
    path = write(
        tmp_path / "m.gguf",
        values=tensors() | {"rope_freqs.weight": divisors},
        extra=lambda w: (w.add_key_length(128), w.add_value_length(128)),
    )
    assert rope_of(path) == expected
    assert "rope_freqs.weight" in open_checkpoint(source_of(path)).tensors


def test_divisors_of_one_change_nothing(tmp_path):
    values = tensors() | {"rope_freqs.weight": np.ones(8, np.float32)}
    assert rope_of(write(tmp_path / "m.gguf", values=values))["rope_type"] == "default"


def test_other_divisors_are_refused(tmp_path):
    values = tensors() | {"rope_freqs.weight": np.linspace(1, 8, 8, dtype=np.float32)}
    with pytest.raises(UnsupportedError, match=r"rope_freqs\.weight that is not Llama 3's"):
        rope_of(write(tmp_path / "m.gguf", values=values))


def test_yarn_takes_its_settings_along(tmp_path):
    def extra(writer):
        yarn(writer)
        writer.add_rope_scaling_yarn_beta_fast(16.0)

    assert rope_of(write(tmp_path / "m.gguf", "qwen3", extra=extra)) == {
        "rope_type": "yarn",
        "rope_theta": 500000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 128,
        "beta_fast": 16.0,
        "beta_slow": 1.0,
    }


@pytest.mark.parametrize(
    "extra",
    [
        lambda w: w.add_rope_scaling_attn_factors(0.7),
        lambda w: w.add_rope_scaling_yarn_ext_factor(0.5),
        lambda w: w.add_rope_scaling_yarn_log_mul(0.1),
    ],
)
def test_yarn_variants_that_hugging_face_has_no_formula_for_are_refused(tmp_path, extra):
    with pytest.raises(UnsupportedError, match="is not run"):
        rope_of(write(tmp_path / "m.gguf", extra=lambda w: (yarn(w), extra(w))))


def test_linear_scaling_has_a_factor(tmp_path):
    def extra(writer):
        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(2.0)

    found = rope_of(write(tmp_path / "m.gguf", extra=extra))
    assert found == {"rope_type": "linear", "rope_theta": 500000.0, "factor": 2.0}


def test_another_scaling_is_named(tmp_path):
    path = write(
        tmp_path / "m.gguf",
        extra=lambda w: w.add_rope_scaling_type(RopeScalingType.LONGROPE),
    )
    with pytest.raises(UnsupportedError, match="'longrope'"):
        rope_of(path)


def test_the_rotation_of_part_of_a_head_is_refused(tmp_path):
    path = write(tmp_path / "m.gguf", extra=lambda w: w.add_rope_dimension_count(8))
    with pytest.raises(UnsupportedError, match="8 of 16"):
        rope_of(path)
