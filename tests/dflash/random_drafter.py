"""Random drafters and targets in float64 whose every weight matters: norms far from 1, biases and sinks far from 0."""

from dataclasses import replace
from typing import Any

import torch
from dflash.reference import Tensors
from torch import Tensor

from outrider.models.config import Rope
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import Confidence, Convolution, DFlashConfig, LayerMask, Markov, Selector
from outrider.models.dflash.network import DFlash
from outrider.models.loading import decoder_config
from outrider.models.tiny import random_tensors

VOCAB, HIDDEN = 61, 32
WINDOW = 6
FULL = LayerMask(None, causal=False)
CAUSAL, AROUND = LayerMask(WINDOW, causal=True), LayerMask(WINDOW, causal=False)
MASKS = {
    "full": (FULL, FULL, FULL),
    "sliding causal": (CAUSAL, CAUSAL, CAUSAL),
    "sliding non-causal": (AROUND, AROUND, AROUND),
    "mixed": (CAUSAL, LayerMask(2 * WINDOW, causal=True), FULL),
    "mixed non-causal": (AROUND, FULL, AROUND),
    "causal without a window": (LayerMask(None, causal=True), FULL, CAUSAL),
}
PLAIN = DFlashConfig(
    vocab_size=VOCAB,
    hidden_size=HIDDEN,
    num_heads=4,
    num_kv_heads=2,
    head_dim=12,
    intermediate_size=40,
    max_positions=256,
    norm_eps=1e-6,
    rope=Rope(5e3),
    layers=MASKS["mixed"],
    block_size=8,
    mask_token=VOCAB - 1,
    taps=(1, 0, 2),
    target_hidden_size=HIDDEN,
)
YARN = {"factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
DFLASH2: dict[str, Any] = {"kind": "dflash2", "convolution": Convolution(2, 8), "selector": Selector(6, 5)}
DSPARK: dict[str, Any] = {"kind": "dspark", "anchor_predicts": True, "confidence": Confidence(with_markov=True)}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "biases": {"biases": True},
    "sinks": {"sinks": True},
    "value scale": {"value_scale": 0.6},
    "value scale, biases, sinks": {"value_scale": 1.7, "biases": True, "sinks": True},
    "embedding scale": {"embedding_scale": HIDDEN**0.5},
    "output multiplier": {"output_multiplier": 0.3},
    "soft cap after the multiplier": {"output_multiplier": 1.9, "soft_cap": 2.5},
    "mask embedding": {"mask_embedding": True, "mask_token": None, "embedding_scale": 1.3},
    "own embedding and head": {"own_embedding": True, "own_head": True},
    "head of fewer words": {"own_head": True, "draft_vocab_size": 23, "soft_cap": 3.0},
    "anchor predicts": {"anchor_predicts": True},
    "wider target": {"target_hidden_size": 48, "taps": (2, 0), "own_embedding": True, "own_head": True},
    "linear rope": {"rope": Rope(1e4, "linear", {"factor": 3.0})},
    "yarn rope": {"rope": Rope(1e4, "yarn", YARN)},
    "llama3 rope": {"rope": Rope(5e5, "llama3", LLAMA3)},
    "one kv head": {"num_kv_heads": 1},
    "all kv heads": {"num_kv_heads": 4},
    "dflash2": DFLASH2,
    "dflash2 of four taps": DFLASH2 | {"convolution": Convolution(4, 16), "biases": True},
    "dspark": DSPARK | {"markov": Markov(5, "vanilla")},
}


def config_of(variant: str = "plain", **changes: Any) -> DFlashConfig:
    return replace(PLAIN, **VARIANTS[variant] | changes)


def random_drafter(config: DFlashConfig, seed: int = 0) -> Tensors:
    """Every tensor of a drafter, and its mask embedding where it has one."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: _random(name, shape, generator) for name, shape in config.tensor_shapes().items()}
    if config.draft_vocab_size is not None:
        words = torch.randperm(config.vocab_size, generator=generator)[: config.draft_vocab_size].sort().values
        tensors["d2t"] = words - torch.arange(config.draft_vocab_size)
    if config.mask_embedding:
        tensors["mask_embedding"] = torch.randn(config.hidden_size, generator=generator, dtype=torch.float64)
    return tensors


def _random(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    if name.endswith("norm.weight"):
        return 0.3 + 1.4 * torch.rand(shape, generator=generator, dtype=torch.float64)
    if name.endswith("base_kernel"):
        values = 0.4 * values
        values[:, 0] += 1
        return values
    if len(shape) == 1 or "codebook" in name or "embed" in name or "_w1" in name:
        return values
    return values * shape[-1] ** -0.5


def random_target(config: DFlashConfig, seed: int = 0) -> tuple[Decoder, Tensor, Tensor]:
    """A target in float64 with its embedding table and head."""
    raw = {
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.target_hidden_size,
        "intermediate_size": 40,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1e4,
        "tie_word_embeddings": False,
    }
    wanted = decoder_config(raw)
    made = random_tensors(wanted, seed=seed)
    tensors = {name: made(name).double() for name in wanted.tensor_shapes()}
    tensors["model.embed_tokens.weight"] *= wanted.hidden_size**0.5
    target = Decoder(wanted, tensors.__getitem__, dtype=torch.float64, device=torch.device("cpu"))
    return target, tensors["model.embed_tokens.weight"], tensors["lm_head.weight"]


def network_of(config: DFlashConfig, tensors: Tensors, target: Decoder) -> DFlash:
    return DFlash(config, tensors.__getitem__, target, tensors.get("mask_embedding"))


def random_features(config: DFlashConfig, *shape: int, seed: int = 0) -> Tensor:
    """Taps of so many tokens, [*shape, F]; far from normed, as hidden states are."""
    generator = torch.Generator().manual_seed(seed)
    width = len(config.taps) * config.target_hidden_size
    scales = torch.linspace(0.3, 3.0, width, dtype=torch.float64)
    return torch.randn(*shape, width, generator=generator, dtype=torch.float64) * scales
