"""Random tiny models in Transformers and in our decoder, with the same weights."""

from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from outrider.models.decoder import Decoder
from outrider.models.loading import decoder_config

SIZES = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
WINDOWS = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2}
# Keys and values of different sizes, so that one cannot be taken for the other; three value heads a key head.
HYBRID = {
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
}
VARIANTS = {
    "llama": ("llama", {}),
    "llama tied": ("llama", {"tie_word_embeddings": True}),
    "llama biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama head size": ("llama", {"head_dim": 12}),
    "llama one kv head": ("llama", {"num_key_value_heads": 1}),
    "llama all kv heads": ("llama", {"num_key_value_heads": 6}),
    "llama llama3 rope": ("llama", {"rope_parameters": LLAMA3}),
    "llama linear rope": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
    ),
    "llama yarn rope": ("llama", {"rope_parameters": YARN}),
    "qwen2": ("qwen2", {}),
    "qwen2 windows": ("qwen2", WINDOWS),
    "qwen2 yarn rope": ("qwen2", {"rope_parameters": YARN, "tie_word_embeddings": True}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "qwen3 windows": ("qwen3", {"head_dim": 16, **WINDOWS}),
    "qwen3 layer types": (
        "qwen3",
        {
            "head_dim": 8,
            "sliding_window": 3,
            "use_sliding_window": True,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
        },
    ),
    "qwen3 biases": ("qwen3", {"attention_bias": True}),
    "qwen3_5": ("qwen3_5_text", HYBRID),
    "qwen3_5 all recurrent but one": (
        "qwen3_5_text",
        {**HYBRID, "layer_types": ["full_attention", *["linear_attention"] * 3], "tie_word_embeddings": True},
    ),
}


@dataclass(frozen=True)
class Pair:
    theirs: torch.nn.Module
    ours: Decoder


def make_pair(variant: str) -> Pair:
    family, options = VARIANTS[variant]
    torch.manual_seed(sum(map(ord, variant)))
    config = AutoConfig.for_model(family, **{**SIZES, **options})
    config._attn_implementation = "eager"
    theirs = AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.3) if parameter.dim() > 1 else parameter.add_(0.2 * torch.randn_like(parameter))
    state = theirs.state_dict()
    ours = Decoder(
        decoder_config(config.to_dict()),
        state.__getitem__,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    return Pair(theirs, ours)
