"""Configs: what is read, what is refused and how."""

import pytest

from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.loading import decoder_config

BASE = {
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}

LINEAR = {"rope_type": "linear", "factor": 2.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": None}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
SLIDING = {"use_sliding_window": True, "sliding_window": 32}


def config(family: str = "llama", **changes):
    return decoder_config({"model_type": family, **BASE, **changes})


def test_old_and_new_keys_of_rope_mean_the_same() -> None:
    old = config(rope_theta=5e5, rope_scaling={"type": "linear", "factor": 2.0})
    new = config(rope_parameters={"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0})
    assert old.rope == new.rope
    assert new.rope.theta == 5e5


def test_windows_of_qwen2_start_at_max_window_layers() -> None:
    windows = {"use_sliding_window": True, "sliding_window": 32, "max_window_layers": 3}
    assert config("qwen2", **windows).windows == (None, None, None, 32)


def test_max_window_layers_of_null_means_the_default_of_28() -> None:
    windows = config("qwen2", **SLIDING, max_window_layers=None, num_hidden_layers=30).windows
    assert windows == (None,) * 28 + (32, 32)


def test_layer_types_of_null_switch_no_windows_on() -> None:
    assert config("qwen2", sliding_window=32, max_window_layers=0, layer_types=None).windows == (None,) * 4


def test_yarn_without_an_original_length_takes_the_models() -> None:
    assert config(rope_scaling=YARN).rope.options["original_max_position_embeddings"] == 256


def test_all_known_options_of_rope_are_read() -> None:
    yarn = {"beta_fast": 32, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 0, "truncate": False}
    more = {"attention_factor": None, "finetuned": True, "partial_rotary_factor": 1.0, "type": "yarn"}
    options = config(rope_parameters={**YARN, **yarn, **more, "rope_theta": 1e6}).rope.options
    assert options.items() >= yarn.items()


def test_windows_of_qwen2_count_only_when_switched_on() -> None:
    assert config("qwen2", sliding_window=32, max_window_layers=0).windows == (None,) * 4


@pytest.mark.parametrize(
    ("family", "changes", "kind", "words"),
    [
        ("mamba", {}, UnsupportedError, "'mamba' is not supported.*llama, qwen2, qwen3"),
        ("llama", {"num_hidden_layers": None}, CheckpointError, "num_hidden_layers.*found None"),
        ("llama", {"hidden_size": "64"}, CheckpointError, "hidden_size.*found '64'"),
        ("llama", {"num_key_value_heads": 3}, CheckpointError, "num_attention_heads=8 is no multiple"),
        ("llama", {"rms_norm_eps": 0}, CheckpointError, "rms_norm_eps.*above 0"),
        ("llama", {"hidden_act": "gelu"}, UnsupportedError, "hidden_act.*expected 'silu'"),
        ("llama", {"sliding_window": 4096}, UnsupportedError, "sliding_window.*not supported"),
        ("llama", {"partial_rotary_factor": 0.5}, UnsupportedError, "partial_rotary_factor"),
        ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, UnsupportedError, "'dynamic'"),
        ("llama", {"rope_scaling": {"rope_type": "llama3"}}, CheckpointError, "needs factor"),
        ("llama", {"rope_scaling": {**LINEAR, "factor": "2"}}, CheckpointError, "'factor'.*above 0, found '2'"),
        ("llama", {"rope_scaling": {**LINEAR, "factor": 0}}, CheckpointError, "'factor'.*above 0"),
        ("llama", {"rope_scaling": {**LINEAR, "mrope_section": [2]}}, UnsupportedError, "mrope_section; expected"),
        ("llama", {"rope_scaling": "linear"}, CheckpointError, "rope_scaling.*expected an object, found 'linear'"),
        ("llama", {"rope_theta": None}, CheckpointError, "rope_theta.*found None"),
        ("llama", {"rope_theta": float("nan")}, CheckpointError, "rope_theta.*found nan"),
        ("llama", {"rope_theta": 10**400}, CheckpointError, "rope_theta.*above 0"),
        ("llama", {"rope_parameters": {"rope_theta": None}}, CheckpointError, "rope_theta.*found None"),
        ("llama", {"rope_parameters": {"rope_theta": -1.0}}, CheckpointError, "rope_theta.*found -1.0"),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, UnsupportedError, "partial_rotary_factor"),
        ("llama", {"rope_parameters": {"full_attention": LINEAR}}, UnsupportedError, "layer type .full_attention"),
        ("llama", {"rope_scaling": YARN, "max_position_embeddings": None}, CheckpointError, "needs original_max"),
        ("llama", {"rope_scaling": {**YARN, "beta_fast": "32"}}, CheckpointError, "beta_fast.*found '32'"),
        ("llama", {"rope_scaling": {**YARN, "attention_factor": 0}}, CheckpointError, "attention_factor.*found 0"),
        ("llama", {"rope_scaling": YARN, "rope_theta": 1}, CheckpointError, "rope_theta other than 1"),
        ("llama", {"rope_scaling": {**LLAMA3, "low_freq_factor": 4.0}}, CheckpointError, "high_freq_factor above"),
        ("llama", {"head_dim": 7}, CheckpointError, "even head_dim.*found 7"),
        ("llama", {"model_type": ["llama"]}, CheckpointError, "model_type.*found .'llama'"),
        ("qwen2", {**SLIDING, "max_window_layers": "3"}, CheckpointError, "max_window_layers.*least 0, found '3'"),
        ("qwen3", {"layer_types": 4}, CheckpointError, "layer_types to be a list.*found 4"),
        ("qwen3", {"layer_types": ["full_attention"]}, CheckpointError, "1 entries"),
        ("qwen3", {"layer_types": ["linear_attention"] * 4}, UnsupportedError, "linear_attention"),
        ("qwen3", {"layer_types": ["sliding_attention"] * 4}, CheckpointError, "sliding_window is None"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(family, changes, kind, words) -> None:
    with pytest.raises(kind, match=words):
        config(family, **changes)
