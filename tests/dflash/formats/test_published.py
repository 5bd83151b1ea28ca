"""Configs of published drafters, key for key: nothing in them is unknown, and they have the published sizes."""

from math import prod

import pytest

from outrider.checkpoint import TensorInfo
from outrider.models.config import Rope
from outrider.models.dflash.config import LayerMask
from outrider.models.dflash.formats.checks import config_problems, tensor_problems
from outrider.models.dflash.formats.shape import MaskToken
from outrider.models.dflash.formats.zlab import read_zlab, zlab_keys

FULL, SLIDING = LayerMask(None, causal=False), LayerMask(2048, causal=True)
COMMON = {
    "architectures": ["DFlashDraftModel"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "dtype": "bfloat16",
    "head_dim": 128,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "model_type": "qwen3",
    "num_attention_heads": 32,
    "num_hidden_layers": 5,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "use_cache": True,
}
OLD = COMMON | {
    "block_size": 16,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "layer_types": ["full_attention"] * 5,
    "max_position_embeddings": 40960,
    "max_window_layers": 5,
    "num_target_layers": 36,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "use_sliding_window": False,
    "vocab_size": 151936,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
}
QWEN3_4B = OLD | {"hidden_size": 2560, "intermediate_size": 9728}
QWEN3_8B = OLD | {"hidden_size": 4096, "intermediate_size": 12288}
QWEN36_27B = COMMON | {
    "block_size": 16,
    "eos_token_id": 248044,
    "pad_token_id": 248044,
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "layer_types": ["sliding_attention"] * 4 + ["full_attention"],
    "max_position_embeddings": 262144,
    "max_window_layers": 5,
    "num_target_layers": 64,
    "rope_scaling": None,
    "rope_theta": 10000000,
    "sliding_window": 2048,
    "use_sliding_window": True,
    "vocab_size": 248320,
    "dflash_config": {"mask_token_id": 248070, "target_layer_ids": [1, 16, 31, 46, 61]},
}
QWEN35_35B_NEW = COMMON | {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "max_position_embeddings": 262144,
    "num_hidden_layers": 6,
    "num_target_layers": 40,
    "rope_parameters": {"rope_theta": 10000000, "rope_type": "default"},
    "sliding_window": 4096,
    "use_sliding_window": True,
    "vocab_size": 248320,
    "dflash_config": {
        "block_size": 16,
        "mask_token_id": 248077,
        "target_layer_ids": [1, 6, 11, 16, 22, 27, 32, 37],
    },
}
QWEN38_27B_DFLASH2 = QWEN36_27B | {
    "architectures": ["DFlash2DraftModel"],
    "is_causal": False,
    "layer_types": ["sliding_attention"] * 5,
    "dflash_config": {
        "mask_token_id": 248070,
        "target_layer_ids": [5, 19, 33, 47, 61],
        "conv_kernel_size": 2,
        "conv_group_size": 16,
        "selector_rank": 256,
        "selector_top_k": 16,
    },
    "block_size": 8,
}
# Weights in the published files; those of the last two are not known.
PUBLISHED = {
    "Qwen3-4B": (QWEN3_4B, 537_427_200, (FULL,) * 5, Rope(1e6)),
    "Qwen3-8B": (QWEN3_8B, 1_048_626_432, (FULL,) * 5, Rope(1e6)),
    "Qwen3.6-27B": (QWEN36_27B, 1_730_213_120, (SLIDING,) * 4 + (FULL,), Rope(1e7)),
    "Qwen3.5-35B-A3B of June 2026": (QWEN35_35B_NEW, None, (LayerMask(4096, causal=True),) * 5 + (FULL,), Rope(1e7)),
    "Qwen3.8-27B DFlash2": (QWEN38_27B_DFLASH2, None, (LayerMask(2048, causal=False),) * 5, Rope(1e7)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_reads_without_a_word(name):
    raw, parameters, layers, rope = PUBLISHED[name]
    keys = zlab_keys(raw)
    config = read_zlab(keys, {}, MaskToken(embedding=False))
    assert (keys.problems, keys.notes) == ([], [])
    assert list(config_problems(config)) == []
    assert (config.layers, config.rope) == (layers, rope)
    shapes = config.tensor_shapes()
    assert parameters in (None, sum(map(prod, shapes.values())))
    if config.kind == "dflash":
        assert len(shapes) == 11 * config.num_layers + 3
    tensors = {name: TensorInfo(shape, "BF16", 0, None) for name, shape in shapes.items()}
    assert list(tensor_problems(config, tensors)) == []
