"""Tiny shapes in the form of a file, for the tests."""

import json
from pathlib import Path

TARGET = {
    "model_type": "qwen3_5",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "mtp_num_hidden_layers": 1,
    "max_position_embeddings": 512,
}
DRAFTER = {
    "architectures": ["DFlashDraftModel"],
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "vocab_size": 64,
    "block_size": 8,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 512,
    "rope_theta": 10000,
    "num_target_layers": 4,
    "dflash_config": {"mask_token_id": 5, "target_layer_ids": [0, 2]},
}


def write(folder: Path, **changes) -> str:
    path = folder / "tiny.json"
    path.write_text(json.dumps({"target": TARGET, "drafter": DRAFTER} | changes), encoding="utf-8")
    return str(path)
