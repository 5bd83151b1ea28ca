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
        ("qwen3", {"layer_types": ["full_attention"]}, CheckpointError, "1 entries"),
        ("qwen3", {"layer_types": ["linear_attention"] * 4}, UnsupportedError, "linear_attention"),
        ("qwen3", {"layer_types": ["sliding_attention"] * 4}, CheckpointError, "sliding_window is None"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(family, changes, kind, words) -> None:
    with pytest.raises(kind, match=words):
        config(family, **changes)
